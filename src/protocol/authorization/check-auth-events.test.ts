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

interface AuthEventsCase {
  readonly rule: string;
  readonly description: string;
  readonly versions: ReturnType<typeof versions>;
  readonly allowed: boolean;
  /** The auth events of the event under test, besides the create event (which is one of them up to v11). */
  readonly authEvents: readonly EventFields[];
  /** The event under test instead of a message. */
  readonly event?: EventFields;
  /** Id of a rejected event. */
  readonly rejected?: string;
  /** Whether the create event is unknown. */
  readonly withoutCreate?: boolean;
}

const allVersions = versions(1);
const joined = { ...membership(member, 'join'), eventId: '$member' };
const power = { ...levels({}), eventId: '$power' };

const cases: readonly AuthEventsCase[] = [
  {
    rule: '3',
    description: 'exactly the selected auth events',
    versions: allVersions,
    allowed: true,
    authEvents: [joined, power],
  },
  {
    rule: '3',
    description: 'fewer auth events than selected',
    versions: allVersions,
    allowed: true,
    authEvents: [joined],
  },
  {
    rule: '3.1',
    description: 'two auth events with the same type and state key',
    versions: allVersions,
    allowed: false,
    authEvents: [joined, { ...joined, eventId: '$other' }],
  },
  {
    rule: '3.1',
    description: 'the same auth event twice',
    versions: allVersions,
    allowed: false,
    authEvents: [joined, joined],
  },
  {
    rule: '3.2',
    description: 'an auth event that is not in the selection',
    versions: allVersions,
    allowed: false,
    authEvents: [joined, { ...joinRule('public'), eventId: '$rule' }],
  },
  {
    rule: '3.2',
    description: "another user's membership as auth event",
    versions: allVersions,
    allowed: false,
    authEvents: [{ ...membership(creator, 'join'), eventId: '$other' }],
  },
  {
    rule: '3.2',
    description: 'a message as auth event',
    versions: allVersions,
    allowed: false,
    authEvents: [{ ...message(member), eventId: '$message' }],
  },
  {
    rule: '3.2',
    description: 'a message with the type of a state event as auth event',
    versions: allVersions,
    allowed: false,
    authEvents: [{ ...power, stateKey: undefined }],
  },
  {
    rule: '3.2',
    description: 'the create event as auth event since v12',
    versions: versions(12),
    allowed: false,
    authEvents: [{ ...create({}), eventId: createId }],
  },
  {
    rule: '3.3',
    description: 'a rejected auth event',
    versions: allVersions,
    allowed: false,
    authEvents: [joined],
    rejected: '$member',
  },
  {
    rule: '3.5',
    description: 'an auth event of another room',
    versions: allVersions,
    allowed: false,
    authEvents: [{ ...joined, roomId: '!other:a.example' }],
  },
  {
    rule: 'v1 2.4',
    description: 'auth events without the create event up to v11',
    versions: versions(1, 11),
    allowed: false,
    authEvents: [joined],
    withoutCreate: true,
  },
  {
    rule: '2',
    description: 'a room id whose create event is not known since v12',
    versions: versions(12),
    allowed: false,
    authEvents: [joined],
    withoutCreate: true,
  },
  {
    rule: '2',
    description: 'a room whose create event was rejected',
    versions: allVersions,
    allowed: false,
    authEvents: [joined],
    rejected: createId,
  },
  {
    rule: '1.5',
    description: 'a create event that has the same auth event twice',
    versions: allVersions,
    allowed: true,
    authEvents: [joined, joined],
    event: create({ creator }),
  },
];

describe('checkAuthEvents', () => {
  for (const entry of cases) {
    test(`${entry.allowed ? 'allows' : 'rejects'} ${entry.description} (rule ${entry.rule})`, () => {
      for (const version of entry.versions) {
        const cited = entry.authEvents.map((fields) => testEvent(version, fields));
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

  test('rejects an auth event that is not known', () => {
    for (const version of allVersions) {
      const room = testEvent(version, create({ creator }));
      const authEventIds = version.createInAuthEvents ? [createId, '$unknown'] : ['$unknown'];
      const verdict = checkAuthEvents(testEvent(version, { ...message(member), authEventIds }), {
        event: (id) => (id === createId ? room : undefined),
        isRejected: () => false,
      });
      assert.equal(verdict.allowed, false);
    }
  });

  test('rejects an event whose room id names an event that is not a create event (rule 2)', () => {
    const [version] = versions(12);
    const notCreate = testEvent(version!, { ...power, eventId: `$${roomIdOf(version!).slice(1)}` });
    const verdict = checkAuthEvents(testEvent(version!, message(member)), {
      event: () => notCreate,
      isRejected: () => false,
    });
    assert.equal(verdict.allowed, false);
  });
});
