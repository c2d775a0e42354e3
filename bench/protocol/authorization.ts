/** Measures the authorization of one event and the check of its auth events, compared with `JSON.stringify` of the event. */
import { authorize, checkAuthEvents, getRoomVersion } from '../../src/protocol/index.ts';
import { microseconds, report } from './measure.ts';
import { admin, type EventFields, publicRoom, userOf } from './room.ts';

const GOAL_US = 20;

const users = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [userOf(i), i % 50]));

const eventFields: Readonly<Record<string, EventFields>> = {
  message: { type: 'm.room.message', sender: userOf(7), content: { msgtype: 'm.text', body: 'Hello' } },
  topic: { type: 'm.room.topic', sender: userOf(6), stateKey: '', content: { topic: 'Weather' } },
  join: {
    type: 'm.room.member',
    sender: '@new:example.org',
    stateKey: '@new:example.org',
    content: { membership: 'join' },
  },
  ban: { type: 'm.room.member', sender: admin, stateKey: userOf(9), content: { membership: 'ban' } },
  'power levels of 200 users': {
    type: 'm.room.power_levels',
    sender: admin,
    stateKey: '',
    content: { users },
  },
};

for (const id of ['6', '12']) {
  const { room, state } = publicRoom(getRoomVersion(id)!, 1000);
  const lookup = room.lookupIn(state);
  console.log(`Room version ${id}, 1,000 members, 500 of them with a power level; goal ${GOAL_US} us`);
  for (const [name, fields] of Object.entries(eventFields)) {
    const event = room.build(fields, state);
    const verdict = authorize(event, lookup);
    if (!verdict.allowed) throw new Error(`${name}: ${verdict.reason}`);
    const stringify = microseconds(() => JSON.stringify(event.pdu));
    report(
      `authorize, ${name}`,
      microseconds(() => authorize(event, lookup)),
      stringify,
    );
    const source = { event: (eventId: string) => room.event(eventId), isRejected: () => false };
    report(
      `checkAuthEvents, ${name}`,
      microseconds(() => checkAuthEvents(event, source)),
      stringify,
    );
  }
}
