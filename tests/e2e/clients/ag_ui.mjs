// One conversation of AG-UI's HttpAgent. Arguments: URL, id of the thread, then one task per run.
// Prints events, messages and the error of every run as JSON. The agent checks the order of the events itself.
import { HttpAgent } from "@ag-ui/client";

const [url, threadId, ...tasks] = process.argv.slice(2);
const agent = new HttpAgent({ url: `${url}/ag-ui`, threadId });
const runs = [];
let number = 0;
for (const content of tasks) {
  number += 1;
  const events = [];
  const run = { error: null, told: null };
  agent.addMessage({ id: `task-${number}`, role: "user", content });
  try {
    const { newMessages } = await agent.runAgent(
      { runId: `run-${number}` },
      {
        onEvent: ({ event }) => {
          events.push(event);
        },
        onRunErrorEvent: ({ event }) => {
          run.told = event;
        },
      },
    );
    run.newMessages = newMessages;
  } catch (error) {
    run.error = error.message;
  }
  runs.push({ ...run, events, messages: structuredClone(agent.messages) });
}
console.log(JSON.stringify(runs));
