"""No tag is swallowed: what is typed wrong is read where it can mean one thing only, else refused; ordinary text is neither."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from routecodex.routing.clients.typed import typed_messages as typed_of
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky, StopMessage
from routecodex.routing.tags.grammar import Unknown
from routecodex.routing.tags.obey import orders_for
from routecodex.routing.tags.typed_tags import tags_of
from routecodex.routing.tags.vocabulary import Vocabulary
from routecodex.routing.tags.words import WORDS
from tests.routing.sessions.calls import messages_call, user
from tests.routing.tags.config_a import NOW, REGISTRY, means

VOCABULARY = Vocabulary(REGISTRY)


def told(text: str) -> SessionState | str:
    """What is in force after the message, or the refusal."""
    (typed,) = typed_of(messages_call(user(text)))
    tags = tags_of(typed, VOCABULARY)
    try:
        orders = orders_for(tags, EMPTY, means(), acts=True, alone=False)
    except RouteCodexError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert refused.status == 400
        assert refused.code in ("BAD_TAG", "PROVIDER_NOT_AVAILABLE")
        return refused.message
    if orders.force is not None:
        return f"force {orders.force}"
    if orders.clock_clear:
        return "clock cleared"
    return orders.state if any(not isinstance(tag, Unknown) for tag in tags) else "nothing"


def stop(text: str, most: int = 10) -> SessionState:
    return EMPTY.with_(stop=StopMessage(text, most, updated_at_ms=NOW))


GLM = EMPTY.with_(allowed=("glm",))
STICKY = EMPTY.with_(sticky=Sticky("glm", None, "glm-4.7"))
READ: dict[str, SessionState | str] = {
    # case and spaces
    '<**STOPMESSAGE:"go on",3**>': stop("go on", 3),
    '<**stopmessage:"go on",3**>': stop("go on", 3),
    '<** stopMessage : "go on" , 3 **>': stop("go on", 3),
    "<** !glm **>": GLM,
    "<**!glm , openai**>": EMPTY.with_(allowed=("glm", "openai")),
    "<**CLOCK:CLEAR**>": "clock cleared",
    "<**clock clear**>": "clock cleared",
    "<**Clear**>": EMPTY,
    # signs between the word, its text and its count
    '<**stopMessage "go on"**>': stop("go on"),
    '<**stopMessage"go on",3**>': stop("go on", 3),
    '<**stopMessage,"go on",1**>': stop("go on", 1),
    '<**stopMessage="go on",2**>': stop("go on", 2),
    '<**stopMessage;"go on";2**>': stop("go on", 2),
    '<**stopMessage:"go on" 3**>': stop("go on", 3),
    '<**stopMessage:"go on":3**>': stop("go on", 3),
    "<**stopmessage:go on,3**>": stop("go on", 3),
    "<**stopMessage:go on**>": stop("go on"),
    "<**stopMessage:继续，３**>": stop("继续", 3),
    "<**stopMessage:go on, 12**>": stop("go on", 12),
    '<**stopMessage:\\"go on\\",3**>': stop("go on", 3),
    # twins
    "<**stopMessage：“继续”，3**>": stop("继续", 3),
    "<**stopMessage:“go on”,3**>": stop("go on", 3),
    "<**stopMessage:„go on“,3**>": stop("go on", 3),
    "<**stopMessage:'go on',3**>": stop("go on", 3),
    "<**stopMessage:'don't stop',3**>": stop("don't stop", 3),
    "<**stopMessage:‘go on’,3**>": stop("go on", 3),
    "<**stopMessage:«go on»,3**>": stop("go on", 3),
    "<**stopMessage:「继续」,3**>": stop("继续", 3),
    "<**stopMessage:＂go on＂,3**>": stop("go on", 3),
    '<**stopMessage:“go on",3**>': stop("go on", 3),
    '<**stopMessage:"go on”,3**>': stop("go on", 3),
    '<**stopMessage:"go on",３**>': stop("go on", 3),
    '<**stopMessage："go on"，3**>': stop("go on", 3),
    '<**ｓｔｏｐＭｅｓｓａｇｅ:"go on"**>': stop("go on"),
    '<**stopMessage:"他说“好”",2**>': stop("他说“好”", 2),
    "<**！glm**>": GLM,
    "<**!glm，openai**>": EMPTY.with_(allowed=("glm", "openai")),
    "<**!glm、openai**>": EMPTY.with_(allowed=("glm", "openai")),
    "<**!glm．glm-4.7**>": STICKY,
    "<**＃glm**>": EMPTY.with_(disabled_providers=("glm",)),
    "<**＠glm**>": EMPTY,
    "<**!ｇｌｍ**>": GLM,
    "＜**!glm**＞": GLM,
    "＜＊＊!glm＊＊＞": GLM,
    "<＊＊!glm＊＊>": GLM,
    "<**　!glm　**>": GLM,
    "<**\u200e!glm**>": GLM,
    "<**!glm\u200f**>": GLM,
    "<**\u202a!glm\u202c**>": GLM,
    "<**!glm\u00ad**>": GLM,
    "<**\u2009!glm\u202f**>": GLM,
    '<**\u2067stopMessage:"go on",3\u2069**>': stop("go on", 3),
    '<**stopMessage:\u200f"go on"\u200f,3**>': stop("go on", 3),
    '<**stopMessage:"می\u200cروم",3**>': stop("می\u200cروم", 3),
    "<**!openai［２］**>": EMPTY.with_(sticky=Sticky("openai", "backup")),
    # what may be left out or doubled
    "<**!glm,**>": GLM,
    "<**!glm,,openai**>": EMPTY.with_(allowed=("glm", "openai")),
    "<**clear,!glm**>": GLM,
    "<**!glm,#openai**>": GLM.with_(disabled_providers=("openai",)),
    "<**stopMessage:off**>": EMPTY,
    "<**stopMessage clear**>": EMPTY,
    "<**stopMessage:CLEAR**>": EMPTY,
}

STOP_FORM = '<*stopMessage:"text",3*>'
"""As an error writes it: nothing in it may be read as a tag again."""
NAMES_FORM = "names are written"
REFUSED: dict[str, str] = {
    # --- stopMessage: no text, wrong quotes
    **dict.fromkeys(
        (
            "<**stopMessage**>",
            "<**stopMessage:**>",
            '<**stopMessage:""**>',
            '<**stopMessage:"  ",3**>',
            "<**stopMessage:“”**>",
            '<**stopMessage:"go on**>',
            '<**stopMessage:go on"**>',
            '<**stopMessage:go on",3**>',
            '<**stopMessage:"a "b" c",3**>',
            '<**stopMessage:"go on"!**>',
            '<**stopMessage("go on",3)**>',
            '<**stopMessage["go on",3]**>',
            '<**stopMessage:{"go on",3}**>',
            '<**stopMessage:3,"go on"**>',
        ),
        "",
    ),
    # --- counts
    **dict.fromkeys(
        (
            f'<**stopMessage:"go on",{count}**>'
            for count in ("0", "-1", "abc", "1.5", "3x", "", "+3", "3,4", "1e3", "∞", "9" * 12)
        ),
        "the count is a number from 1 on",
    ),
    **dict.fromkeys(("<**stopMessage:go on,0**>", "<**stopMessage:go on,abc**>", "<**stopMessage:go on 3**>"), STOP_FORM),
    "<**stopMessage:<file://m.md>,0**>": "the count is a number from 1 on",
    # --- switches, numbers, paths without quotes
    **dict.fromkeys(
        (
            f"<**stopMessage:{value}**>"
            for value in (
                "on",
                "on,10",
                "off,10",
                "clear,3",
                "clear now",
                "claer",
                "cleer",
                "stop",
                "none",
                "false",
                "true",
                "3",
                "10,3",
                "/tmp/m.md",
                "./m.md",
                "~/m.md",
                "m.md",
                "stopMessage/m.md",
                "file://m.md",
                "<m.md>",
                "<file:m.md>",
                "status",
                "go on, please",
                "-go",
                "!go",
            )
        ),
        STOP_FORM,
    ),
    '<**stopMessage:"clear"**>': "<*stopMessage:clear*>",
    "<**stopMessage:“off”**>": "<*stopMessage:clear*>",
    '<**stopMessage:"file://m.md",3**>': "<*stopMessage:<file://m.md>*>",
    '<**stopMessage:"<file://m.md>"**>': "<*stopMessage:<file://m.md>*>",
    "<**stopMessage:<file://../x>**>": "The stopMessage file ../x is not there",
    # --- the word itself
    **dict.fromkeys(
        (
            '<**stopMesage:"go on",3**>',
            '<**stopMessages:"go on"**>',
            '<**stopMassage:"go on"**>',
            '<**stop message:"go on"**>',
            '<**stop-message:"go on"**>',
            '<**stop_message:"go on"**>',
            '<**stopmsg:"go on"**>',
            '<**stop:"go on",3**>',
            '<**sotpMessage:"go on"**>',
            "<**stopMessagego on**>",
            '<**!stopMessage:"go on"**>',
            '<**:stopMessage:"go on"**>',
            '<**/stopMessage "go on"**>',
            "<**stopMesage:clear**>",
            "<**stop message clear**>",
        ),
        STOP_FORM,
    ),
    # --- marks
    **dict.fromkeys(
        ('<**stopMessage:"go on"', '<**stopMessage:"go on",3*>', '<*stopMessage:"go on",3**>', '<*stopMessage:"go on"*>'),
        STOP_FORM,
    ),
    **dict.fromkeys(("<*clear*>", "<**clear*>", "<*clear**>", "<***clear***>", "< **clear** >"), "<*clear*>"),
    **dict.fromkeys(("< **clear**>", "<**clear>", "**clear**>"), "<*clear*>"),
    **dict.fromkeys(("<*!glm.glm-4.7*>", "<**!glm.glm-4.7", "<**!glm.glm-4.7*>", "<**!glm.glm-4.7>"), "<*!glm.glm-4.7*>"),
    **dict.fromkeys(("!glm.glm-4.7**>", "< **!glm.glm-4.7**>"), "<*!glm.glm-4.7*>"),
    **dict.fromkeys(("<*glm.glm-4.7*>", "<**glm.glm-4.7>", "<**glm.glm-4.7 please"), "<*glm.glm-4.7*>"),
    "<***!glm***>": "<*!glm*>",
    **dict.fromkeys(("《**clear**》", "〈**clear**〉", "《**clear**>", "see《**clear**》"), "<*clear*>"),
    **dict.fromkeys(("《**!glm.glm-4.7**》", "《**!glm.glm-4.7》", "《**！glm．glm-4.7**》"), "<*!glm.glm-4.7*>"),
    **dict.fromkeys(("《**stopMessage：“继续”，3**》", '《**stopMessage:"go on"**》'), STOP_FORM),
    # --- words
    **{
        f"<**{typed}**>": f"<*{meant}*> is a tag of its own"
        for typed, meant in (
            ("clear,status", "status"),
            ("!glm,status", "status"),
            ("glm.glm-4.7,why", "why"),
            ("#openai.1,models", "models"),
        )
    },
    **{
        f"<**{typed}**>": f"<*{meant}*>"
        for typed, meant in (
            ("clear all", "clear"),
            ("clear!", "clear"),
            ("clear.", "clear"),
            ("clear()", "clear"),
            ("/clear", "clear"),
            ("!clear", "clear"),
            ('"clear"', "clear"),
            ("clear:all", "clear"),
            ("claer all", "clear"),
            ("status now", "status"),
            ("status:glm", "status"),
            ("#status", "status"),
            ("stauts glm", "status"),
            ("help me", "help"),
            ("help?", "help"),
            ("--help", "help"),
            ("why?", "why"),
            ("why:glm", "why"),
            ("model:glm", "models"),
            ("model=glm-4.7", "models"),
            ("models:glm.glm-4.7", "models"),
            ("models:", "models"),
            ("clock", "clock:clear"),
            ("clock:{}", "clock:clear"),
            ("clock:claer", "clock:clear"),
            ("clock:list", "clock:clear"),
            ("clcok:clear", "clock:clear"),
        )
    },
    **{
        f"<**{typed}**>": "nearest known: " + meant
        for typed, meant in (
            ("claer", "clear"),
            ("clera", "clear"),
            ("clea", "clear"),
            ("stauts", "status"),
            ("statu", "status"),
            ("hlep", "help"),
            ("model", "models"),
        )
    },
    # --- a letter of another script
    **{
        f"<**{typed}**>": f"<*{meant}*>"
        for typed, meant in (("сlear", "clear"), ("statús", "status"), ("stаtus", "status"), ("hеlp", "help"), ("uśage", "usage"))
    },
    **{
        f"<**{typed}**>": "names are written"
        for typed in ("гlm.glm-4.7", "!glм", "ģlm", "#οpenai", "оpenai,glm", "гlm[key1]", "!öpenai")
    },
    "<**glm.glм-4.7**>": "nearest known: glm.glm-4.7",
    "<**glm[kеy1]**>": "nearest known: glm.key1",
    # --- words of what is not there yet
    **{
        f"<**{typed}**>": f"there is no <*{typed.split(':')[0].split()[0]}*> yet"
        for typed in ("wait:5m", "wait 5m", 'until:"tests pass"', "budget:5", "budget 5$", "resume")
    },
    "<**budgte:5**>": "if budget is meant",
    # --- names
    "<**!GLM**>": "nearest known: glm",
    "<**GLM.glm-4.7**>": "nearest known: glm.glm-4.7",
    "<**!gml**>": "glm",
    "<**gml.glm-4.7**>": "glm",
    "<**gpt-4**>": "nearest known: openai.gpt-4",
    "<**!gpt-5.2**>": "nearest known: openai.gpt-5.2",
    "<**glm-4.7**>": "nearest known: glm.glm-4.7",
    "<**GPT-4**>": "nearest known: openai.gpt-4",
    "<**claude-sonnet-4-5**>": "anthropic.claude-sonnet-4-5",
    "<**glm.glm-4.6**>": "glm.glm-4.7",
    "<**glm.glm4.7**>": "glm.glm-4.7",
    "<**openai.gpt4**>": "openai.gpt-4",
    "<**#openai.4**>": "openai.4 not found",
    "<**#openai.0**>": "openai.0 not found",
    "<**@openai.fourth**>": "openai.fourth not found",
    "<**#1**>": "1 not found",
    "<**!glm.glm-4.7:passthrough**>": "not found",
    "<**openai[nope].gpt-4**>": "not found",
    "<**!glm[key1]glm-4.7**>": NAMES_FORM,
    "<**readme.md**>": "put it in backticks",
    "<**@john**>": "put it in backticks",
    "<**!someone**>": "put it in backticks",
    "<**!智谱**>": NAMES_FORM,
    **{
        f"<**{typed}**>": "nearest: <*glm.glm-4.7*>"
        for typed in ("glm/glm-4.7", "glm:glm-4.7", "glm glm-4.7", "glm->glm-4.7", "glm . glm-4.7", "glm;glm-4.7", "GLM/GLM-4.7")
    },
    **{
        f"<**{typed}**>": f"nearest: <*{typed[0]}glm.glm-4.7*>"
        for typed in ("!glm/glm-4.7", "! glm.glm-4.7", "!glm glm-4.7", "!glm. glm-4.7", "#glm:glm-4.7", "@glm/glm-4.7")
    },
    **dict.fromkeys(
        (
            "<**#!glm**>",
            "<**!#glm**>",
            "<**!!glm**>",
            "<**@#glm**>",
            "<**glm.**>",
            "<**!glm.**>",
            "<**!glm.,glm-4.7**>",
            "<**!glm[key1**>",
            "<**!glm;openai**>",
            "<**!glm openai**>",
            "<**!glm|openai**>",
            "<**!glm+openai**>",
            "<**!glm&openai**>",
            "<**!glm and openai**>",
            "<**disable glm**>",
            "<**use:glm**>",
            "<**force:glm.glm-4.7**>",
            "<**glm!**>",
            "<**glm?**>",
            "<**(glm)**>",
            "<**'glm'**>",
            "<**- glm**>",
        ),
        NAMES_FORM,
    ),
}

ORDINARY = (
    # nothing at all
    "<****>",
    "<** **>",
    "<**123**>",
    "<**1,2**>",
    "<**3.14**>",
    "<**!**>",
    "<**#**>",
    "<**@**>",
    "<**---**>",
    "<**!!!**>",
    "<**...**>",
    # words
    "<**please read this**>",
    "<**two words**>",
    "<**a b c**>",
    "<**who cares**>",
    "<**in other words, no**>",
    "<**note well:**>",
    "<**this is important!**>",
    "<**and so on and so forth**>",
    "<**重要**>",
    "<**请注意这一点**>",
    "<**très important ici**>",
    "<**очень важно**>",
    "<**a. b**>",
    "<**he said so**>",
    "**Note: stop messages**> are red",
    "see **stopMessage of the editor**> there",
    "<*args(*x)>",
    "<**open source ai**>",
    "<**важно**>",
    "<**très**> bien",
    "<**naïve**>",
    "<**élan.vital**>",
    "<**修复bug**>",
    "《**红楼梦**》",
    "《**Notes**》",
    "《**three body problem**》",
    "〈**注**〉",
    "<**we wait for the build to end**>",
    "<**wait for the tests**>",
    "<**help is on the way**>",
    "<**clear as day to me**>",
    "<**why would anybody do that**>",
    "<**the status of the build is red**>",
    "<**stop and think about it**>",
    "<**see below, please**>",
    "<**resume the work after lunch**>",
    "<**until the end of the day**>",
    "<**the clock is ticking fast**>",
    "<**git push origin main**>",
    "<**the model is large**>",
    "<**openai and others said so**>",
    "<**echo $HOME**>",
    # Markdown
    "<**# Heading one**>",
    "<**## Usage of this**>",
    "<**- item**>",
    "<**> quoted text**>",
    "<**[link](http://x.y)**>",
    "<**![image](a.png)**>",
    "<**| a | b |**>",
    "<**~~gone~~**>",
    "<**1. first**>",
    "<**:tada:**>",
    "<**`code`**>",
    "<**a** and **b**>",
    "a <** b ** c **> d",
    "**bold** and <b>**more**</b>",
    "***very bold***> quoted",
    "**Note:**> see",
    "<**bold text**> and <**more text**>",
    # code
    "foo<**p && q**>bar",
    "if (a <**b && c**> d)",
    "<**p+1**>",
    "<**p = *q**>",
    "<**a->b**>",
    "<**x := 1**>",
    "<**f(x)**>",
    "<**a[i][j]**>",
    "<**# Heading**>",
    "<**! note**>",
    "<**&x**>",
    "<**$HOME**>",
    "<**%s**>",
    "<**{ key: value }**>",
    "<**int main() { return 0; }**>",
    "<**//comment here**>",
    "<**/* c */**>",
    "template<**T*, U*> f",
    "x <*p, y *> z",
    "int **a; b <*a; c",
    "<*x*>",
    "<*args, **kwargs>",
    "def f(<*args>)",
    "<**kwargs",
    "<**args)",
    "x <**broken y",
    "<**{**a, **b}**>",
    "2 <** 3",
    "a<**=b",
    "<**^[a-z]+$**>",
    "<**SELECT * FROM t**>",
    "<**!= 3**>",
    "<**@Override public**>",
    "<**#include <x.h>**>",
    "<**!important; color: red**>",
    "<**#ifdef A B**>",
    # logs, mail, addresses
    "<**2024-01-02 03:04:05 ERROR failed**>",
    "<**[INFO] started**>",
    "<**pid=3 tid=4**>",
    "<**http://x.y/z?a=b**>",
    "<**https://openai.com/x**>",
    "<**john@example.com**>",
    "<**John Doe <j@x.y>**>",
    "<**From: me**>",
    "<**Re: your mail of today**>",
    "<**/usr/bin/env**>",
    "<**C:\\\\temp**>",
    "<**foo:bar**>",
    "<**hb:on**>",
    "<**sm:30**>",
    "<**a=b**>",
    "<**50%**>",
    "<**$5**>",
    "<**+49 30 1234**>",
    "<**@all: lunch**>",
    "<**#42 is fixed**>",
    "<**-v**>",
    "<**~/notes**>",
    "<**[x]**>",
    "<**(c) 2024**>",
    "<**<tag>**>",
    "<**&nbsp;**>",
    "<**«quoted words here»**>",
)


@pytest.mark.parametrize("tag", READ)
def test_what_can_mean_one_thing_only_is_read(tag: str) -> None:
    assert told(f"{tag} hi") == READ[tag]


@pytest.mark.parametrize("tag", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_right_form(tag: str) -> None:
    message = told(f"do this {tag}")
    assert isinstance(message, str), message
    assert "Nothing was sent, and nothing changed." in message
    assert REFUSED[tag].replace("<*", "<**").replace("*>", "**>") in message


_BESIDE = {
    "<": ",>",
    "*": "8(",
    ">": ".<",
    "!": "1",
    "#": "3",
    "@": "2",
    ".": ",;",
    ",": ".",
    ":": ";",
    '"': "'2",
    "[": "{(",
    "]": "})",
}


def slips(tag: str) -> Iterator[str]:
    """What one slip of the hand makes of it, at any place: a letter lost, twice, before its neighbour, a key beside it or without
    shift, a space, a new line."""
    for at, letter in enumerate(tag):
        before, after = tag[:at], tag[at + 1 :]
        yield before + after
        yield f"{before}{letter}{letter}{after}"
        yield f"{before}{after[:1]}{letter}{after[1:]}"
        yield from (f"{before}{other}{after}" for other in (*_BESIDE.get(letter, ""), letter.swapcase()))
        yield from (f"{before}{space}{letter}{after}" for space in " \n")


@pytest.mark.parametrize(
    "tag",
    [
        "<**!glm.glm-4.7**>",
        "<**glm.glm-4.7**>",
        "<**!glm,openai**>",
        "<**#openai.1**>",
        "<**@openai**>",
        "<**!openai[primary].gpt-4**>",
        '<**stopMessage:"go on",3**>',
        "<**stopMessage:clear**>",
        "<**clock:clear**>",
        "<**models:glm**>",
        "<**echo**>",
        *(f"<**{word}**>" for word in WORDS),
    ],
)
def test_no_single_slip_is_swallowed(tag: str) -> None:
    swallowed = {slip for slip in slips(tag) if told(f"do {slip} hi") == "nothing"}
    assert not swallowed


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_never_refused(text: str) -> None:
    assert told(f"so {text} it is") == "nothing"


def test_how_many() -> None:
    assert len(READ) + len(REFUSED) >= 186
    assert len(ORDINARY) >= 100


@pytest.mark.parametrize("tag", [*READ, *REFUSED])
def test_in_backticks_it_is_text(tag: str) -> None:
    if "`" not in tag:
        assert told(f"see ``{tag}`` there") == "nothing"
        assert told(f"see\n```\n{tag}\n```\n") == "nothing"


def test_a_provider_that_is_named_like_a_slip_is_no_slip() -> None:
    glm = REGISTRY.providers["glm"]
    registry = replace(REGISTRY, providers={**REGISTRY.providers, "clean": replace(glm, id="clean")})
    (typed,) = typed_of(messages_call(user("<**clean**> hi")))
    tags = tags_of(typed, Vocabulary(registry))
    assert orders_for(tags, EMPTY, means(registry=registry), acts=True, alone=False).state.allowed == ("clean",)
