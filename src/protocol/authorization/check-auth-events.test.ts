import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkAuthEvents } from './check-auth-events.ts';
import {
  create,
  creator,
  joinRule,
  levels,
  member,
  membership,
  message,
  versions,
} from './test/rule-cases.ts';
import { createId, type EventFields, roomIdOf, testEvent } from './test/test-events.ts';

interface ListCase {
  readonly rule: string;
  readonly description: string;
  readonly versions: ReturnType<typeof versions>;
  readonly allowed: boolean;
  /** What the message under test cites besides the create event (which it cites up to v11). */
  readonly cites: readonly EventFields[];
  readonly event?: EventFields;
  readonly rejected?: string;
  readonly withoutCreate?: boolean;
}

const all = versions(1);
const joined = { ...membership(member, 'join'), eventId: '$member' };
const power = { ...levels({}), eventId: '$power' };

const cases: readonly ListCase[] = [
  { rule: '3', description: 'what belongs there', versions: all, allowed: true, cites: [joined, power] },
  { rule: '3', description: 'less than that', versions: all, allowed: true, cites: [joined] },
  {
    rule: '3.1',
    description: 'two for the same key',
    versions: all,
    allowed: false,
    cites: [joined, { ...joined, eventId: '$other' }],
  },
  { rule: '3.1', description: 'one twice', versions: all, allowed: false, cites: [joined, joined] },
  {
    rule: '3.2',
    description: 'state that does not matter',
    versions: all,
    allowed: false,
    cites: [joined, { ...joinRule('public'), eventId: '$rule' }],
  },
  {
    rule: '3.2',
    description: 'the membership of somebody else',
    versions: all,
    allowed: false,
    cites: [{ ...membership(creator, 'join'), eventId: '$other' }],
  },
  {
    rule: '3.2',
    description: 'a message',
    versions: all,
    allowed: false,
    cites: [{ ...message(member), eventId: '$message' }],
  },
  {
    rule: '3.2',
    description: 'a message with the type of state',
    versions: all,
    allowed: false,
    cites: [{ ...power, stateKey: undefined }],
  },
  {
    rule: '3.2',
    description: 'the create event since v12',
    versions: versions(12),
    allowed: false,
    cites: [{ ...create({}), eventId: createId }],
  },
  {
    rule: '3.3',
    description: 'a rejected one',
    versions: all,
    allowed: false,
    cites: [joined],
    rejected: '$member',
  },
  {
    rule: '3.5',
    description: 'one of another room',
    versions: all,
    allowed: false,
    cites: [{ ...joined, roomId: '!other:a.example' }],
  },
  {
    rule: 'v1 2.4',
    description: 'no create event up to v11',
    versions: versions(1, 11),
    allowed: false,
    cites: [joined],
    withoutCreate: true,
  },
  {
    rule: '2',
    description: 'a room whose create event is not known since v12',
    versions: versions(12),
    allowed: false,
    cites: [joined],
    withoutCreate: true,
  },
  {
    rule: '2',
    description: 'a room whose create event was rejected',
    versions: all,
    allowed: false,
    cites: [joined],
    rejected: createId,
  },
  {
    rule: '1.5',
    description: 'whatever a create event cites',
    versions: all,
    allowed: true,
    cites: [joined, joined],
    event: create({ creator }),
  },
];

describe('rules about the list of auth events', () => {
  for (const entry of cases) {
    test(`${entry.rule}: ${entry.description}, ${entry.allowed ? 'allowed' : 'rejected'}`, () => {
      for (const version of entry.versions) {
        const cited = entry.cites.map((fields) => testEvent(version, fields));
        const room = entry.withoutCreate ? [] : [testEvent(version, create({ creator }))];
        const events = new Map([...room, ...cited].map((event) => [event.eventId, event]));
        const authEvents = version.createInAuthEvents ? [...room, ...cited] : cited;
        const event = testEvent(version, {
          ...(entry.event ?? message(member)),
          authEventIds: authEvents.map(({ eventId }) => eventId),
        });
        const verdict = checkAuthEvents(event, {
          event: (id) => events.get(id),
          isRejected: (id) => id === entry.rejected,
        });
        const reason = verdict.allowed ? 'allowed' : verdict.reason;
        assert.equal(verdict.allowed, entry.allowed, `version ${version.id}: ${reason}`);
      }
    });
  }

  test('a cited event that is not known rejects', () => {
    for (const version of all) {
      const room = testEvent(version, create({ creator }));
      const authEventIds = version.createInAuthEvents ? [createId, '$unknown'] : ['$unknown'];
      const verdict = checkAuthEvents(testEvent(version, { ...message(member), authEventIds }), {
        event: (id) => (id === createId ? room : undefined),
        isRejected: () => false,
      });
      assert.equal(verdict.allowed, false);
    }
  });

  test('2: the room id names something else than a create event', () => {
    const [version] = versions(12);
    const notCreate = testEvent(version!, { ...power, eventId: `$${roomIdOf(version!).slice(1)}` });
    const verdict = checkAuthEvents(testEvent(version!, message(member)), {
      event: () => notCreate,
      isRejected: () => false,
    });
    assert.equal(verdict.allowed, false);
  });
});
