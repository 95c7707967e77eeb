// One question and one tool call through a package of Vercel's AI SDK; what came of it as one line of JSON.
import { setGlobalDispatcher, EnvHttpProxyAgent } from "undici";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

setGlobalDispatcher(new EnvHttpProxyAgent());
const [name, how, prompt] = process.argv.slice(2);
const own = { apiKey: "sk-dummy" };
const models = {
  alibaba: async () => (await import("@ai-sdk/alibaba")).createAlibaba(own)("qwen-max"),
  anthropic: async () => (await import("@ai-sdk/anthropic")).createAnthropic(own)("claude-sonnet-4-5"),
  cerebras: async () => (await import("@ai-sdk/cerebras")).createCerebras(own)("gpt-oss-120b"),
  deepseek: async () => (await import("@ai-sdk/deepseek")).createDeepSeek(own)("deepseek-chat"),
  fireworks: async () => (await import("@ai-sdk/fireworks")).createFireworks(own)("accounts/fireworks/models/m"),
  google: async () => (await import("@ai-sdk/google")).createGoogleGenerativeAI(own)("gemini-2.5-pro"),
  huggingface: async () => (await import("@ai-sdk/huggingface")).createHuggingFace(own)("m"),
  minimax: async () => (await import("vercel-minimax-ai-provider")).createMinimax(own)("MiniMax-M2"),
  mistral: async () => (await import("@ai-sdk/mistral")).createMistral(own)("mistral-large-latest"),
  moonshot: async () => (await import("@ai-sdk/moonshotai")).createMoonshotAI(own)("kimi-k2"),
  openai: async () => (await import("@ai-sdk/openai")).createOpenAI(own)("gpt-5"),
  "openai-chat": async () => (await import("@ai-sdk/openai")).createOpenAI(own).chat("gpt-5"),
  openrouter: async () => (await import("@openrouter/ai-sdk-provider")).createOpenRouter(own)("m"),
  together: async () => (await import("@ai-sdk/togetherai")).createTogetherAI(own)("m"),
  xai: async () => (await import("@ai-sdk/xai")).createXai(own).responses("grok-4"),
  zhipu: async () =>
    (await import("zhipu-ai-provider")).createZhipu({ ...own, baseURL: "https://open.bigmodel.cn/api/paas/v4" })("glm-4.6"),
};

const told = { text: "", calls: [], finish: null, tokens: null, errors: [] };
try {
  const look = tool({
    description: "look",
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }) => `saw ${path}`,
  });
  const asked = { model: await models[name](), prompt, stopWhen: stepCountIs(3), maxRetries: 0, tools: { look } };
  if (how === "json") {
    const answer = await generateText(asked);
    told.text = answer.text;
    told.calls = answer.steps.flatMap((step) => step.toolCalls.map((call) => [call.toolName, call.input]));
    told.finish = answer.finishReason;
    told.tokens = answer.totalUsage.inputTokens ?? null;
  } else {
    const answer = streamText({ ...asked, onError: ({ error }) => told.errors.push(String(error).slice(0, 400)) });
    for await (const part of answer.fullStream) {
      if (part.type === "text-delta") told.text += part.text;
      if (part.type === "tool-call") told.calls.push([part.toolName, part.input]);
      if (part.type === "finish") {
        told.finish = part.finishReason;
        told.tokens = part.totalUsage.inputTokens ?? null;
      }
    }
  }
} catch (error) {
  told.errors.push(`${error} ${error.cause ?? ""}`.slice(0, 600));
}
console.log(JSON.stringify(told));
