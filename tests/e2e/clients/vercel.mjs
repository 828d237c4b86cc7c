// One chat as useChat holds it: AbstractChat over the SDK's own transport. Arguments: URL, then one task per turn.
// Prints the messages of the chat, its status and its error after every turn as JSON.
import { AbstractChat, DefaultChatTransport } from "ai";

const [url, chat_id, ...tasks] = process.argv.slice(2);

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.seen += 1;
    this.messages = this.messages.with(index, this.snapshot(message));
  };
  snapshot = (value) => structuredClone(value);
  seen = 0;
}

const state = new State();

class Chat extends AbstractChat {}

const finished = [];
const chat = new Chat({
  id: chat_id,
  state,
  transport: new DefaultChatTransport({ api: `${url}/api/chat` }),
  onFinish: ({ message, isError, isAbort, isDisconnect }) =>
    finished.push({ id: message.id, isError, isAbort, isDisconnect }),
});
const turns = [];
for (const text of tasks) {
  state.seen = 0;
  await chat.sendMessage({ text });
  turns.push({
    status: chat.status,
    error: chat.error === undefined ? null : chat.error.message,
    changes: state.seen,
    finished: finished.splice(0),
    messages: structuredClone(chat.messages),
  });
}
console.log(JSON.stringify(turns));
