import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Someone } from './someone.ts';

/** How long two servers may take to tell each other everything, in milliseconds. */
const patience = 60_000;

/** The event behind each entry of the room's state. */
async function entries(person: Someone, room: string): Promise<Record<string, string>> {
  const state = await person.state(room);
  return Object.fromEntries(
    [...state].map(([key, event]) => [key, event['event_id'] as string] as const).sort(),
  );
}

/** Both servers hold the same state of the room, event by event; users of both must be in it. */
export async function assertAgreement(room: string, one: Someone, other: Someone): Promise<void> {
  const until = performance.now() + patience;
  for (;;) {
    const [here, there] = await Promise.all([entries(one, room), entries(other, room)]);
    if (JSON.stringify(here) === JSON.stringify(there)) return;
    if (performance.now() > until) assert.deepEqual(here, there, 'the servers hold different states');
    await sleep(200);
  }
}
