import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';
import { resolveState } from '../../../test/support/rooms/resolve-state.ts';
import { createId, type EventFields, testEvent, version } from '../authorization/test/test-events.ts';
import { type RoomEvent, stateMapKey } from '../event.ts';
import { MemorySource, sorted, stateOf } from './test/memory-source.ts';

const v1 = version(1);
const [ann, bob, cat] = ['@ann:a.example', '@bob:b.example', '@cat:c.example'] as const;

let eventCount = 0;
function event(fields: EventFields): RoomEvent {
  return testEvent(v1, { stateKey: '', eventId: `$${++eventCount}:a.example`, ...fields });
}

function member(user: string, membership: string, fields: Partial<EventFields> = {}): RoomEvent {
  return event({ type: 'm.room.member', sender: user, stateKey: user, content: { membership }, ...fields });
}

function levels(sender: string, users: Record<string, number>, depth: number): RoomEvent {
  return event({ type: 'm.room.power_levels', sender, content: { users }, depth });
}

function topic(sender: string, depth: number, eventId = `$${++eventCount}:a.example`): RoomEvent {
  return event({ type: 'm.room.topic', sender, depth, eventId });
}

/** The events that all states of these rooms have in common. */
const common = [
  event({
    type: 'm.room.create',
    sender: ann,
    content: { creator: ann },
    eventId: createId,
    prevEventIds: [],
  }),
  member(ann, 'join'),
  member(bob, 'join'),
];

/** Resolves two states, and checks that their order makes no difference. Each has the common events and the given ones. */
function resolve(first: readonly RoomEvent[], second: readonly RoomEvent[]): Map<string, string> {
  const source = new MemorySource([...common, ...first, ...second]);
  const states = [first, second].map((events) => stateOf([...common, ...events]));
  const resolved = resolveState(v1, states, source);
  assert.deepEqual(sorted(resolveState(v1, states.toReversed(), source)), sorted(resolved));
  return new Map(resolved);
}

/** Returns the id of the event that the two states resolve to for the type and state key of `contender`. */
function winner(
  first: readonly RoomEvent[],
  second: readonly RoomEvent[],
  contender: RoomEvent,
): string | undefined {
  return resolve(first, second).get(stateMapKey(contender.type, contender.stateKey!));
}

describe('state resolution v1', () => {
  test('keeps events that only one of the states has', () => {
    const joined = member(cat, 'join');
    const newTopic = topic(ann, 5);
    const resolved = resolve([joined], [newTopic]);
    assert.equal(resolved.size, common.length + 2);
  });

  test('takes the latest power levels if each is allowed after the one before it', () => {
    const first = levels(ann, { [ann]: 100, [bob]: 100 }, 5);
    const second = levels(bob, { [ann]: 100, [bob]: 100, [cat]: 100 }, 6);
    assert.equal(winner([first], [second], first), second.eventId);
  });

  test('ignores power levels whose sender lacks the level in the earlier power levels', () => {
    const first = levels(ann, { [ann]: 100, [bob]: 0 }, 5);
    const second = levels(bob, { [ann]: 100, [bob]: 100 }, 6);
    assert.equal(winner([first], [second], first), first.eventId);
  });

  test('takes the first power levels without checking them', () => {
    const first = levels(cat, { [cat]: 100 }, 5);
    const second = levels(ann, { [ann]: 100 }, 6);
    assert.equal(winner([first], [second], first), first.eventId);
  });

  test('takes the power levels whose event id has the lower SHA-1 at equal depth', () => {
    const events = [levels(ann, { [ann]: 100 }, 5), levels(ann, { [ann]: 100 }, 5)] as const;
    const [lower] = [...events].sort((a, b) => (hash('sha1', a.eventId) < hash('sha1', b.eventId) ? -1 : 1));
    assert.equal(winner([events[0]], [events[1]], events[0]), lower!.eventId);
  });

  test('resolves power levels first, then join rules, then memberships', () => {
    const open = event({
      type: 'm.room.join_rules',
      sender: ann,
      content: { join_rule: 'public' },
      depth: 5,
    });
    const closed = event({
      type: 'm.room.join_rules',
      sender: bob,
      content: { join_rule: 'invite' },
      depth: 6,
    });
    const earlyLevels = levels(ann, { [ann]: 100, [bob]: 50 }, 5);
    const lateLevels = levels(ann, { [ann]: 100 }, 6);
    const catLeft = member(cat, 'leave', { depth: 5 });
    const joined = member(cat, 'join', { depth: 6 });
    const resolved = resolve([earlyLevels, open, catLeft], [lateLevels, closed, joined]);
    assert.equal(resolved.get(stateMapKey('m.room.power_levels', '')), lateLevels.eventId);
    assert.equal(resolved.get(stateMapKey('m.room.join_rules', '')), open.eventId);
    assert.equal(resolved.get(stateMapKey('m.room.member', cat)), joined.eventId);
  });

  test('resolves memberships independently of each other', () => {
    const rules = event({ type: 'm.room.join_rules', sender: ann, content: { join_rule: 'public' } });
    const catLeft = member(cat, 'leave', { depth: 5 });
    const catJoined = member(cat, 'join', { depth: 6 });
    const dan = '@dan:a.example';
    const invited = { stateKey: dan, content: { membership: 'invite' } };
    const danLeft = member(dan, 'leave', { depth: 5 });
    const danInvited = member(cat, 'invite', { ...invited, depth: 6 });
    const resolved = resolve([rules, catLeft, danLeft], [rules, catJoined, danInvited]);
    assert.equal(resolved.get(stateMapKey('m.room.member', cat)), catJoined.eventId);
    // The inviter does not count as joined while their own membership is in conflict.
    assert.equal(resolved.get(stateMapKey('m.room.member', dan)), danLeft.eventId);
  });

  test('takes the deepest allowed event for other types', () => {
    const [early, late, latest] = [topic(ann, 5), topic(ann, 6), topic(bob, 7)];
    assert.equal(winner([early], [late], early), late.eventId);
    assert.equal(winner([late], [latest], late), late.eventId);
  });

  test('takes the event whose id has the lower SHA-1 at equal depth', () => {
    const events = [topic(ann, 5, '$x:a.example'), topic(ann, 5, '$y:a.example')] as const;
    const [lower] = [...events].sort((a, b) => (hash('sha1', a.eventId) < hash('sha1', b.eventId) ? -1 : 1));
    assert.equal(winner([events[0]], [events[1]], events[0]), lower!.eventId);
  });

  test('keeps the earliest event if none is allowed', () => {
    const [early, late] = [topic(bob, 5), topic(bob, 6)];
    assert.equal(winner([early], [late], early), early.eventId);
  });

  test('ignores events that the source does not know', () => {
    const known = topic(ann, 5);
    const source = new MemorySource([...common, known]);
    const states = [known.eventId, '$unknown:a.example'].map((id) =>
      stateOf(common).set(stateMapKey('m.room.topic', ''), id),
    );
    assert.equal(resolveState(v1, states, source).get(stateMapKey('m.room.topic', '')), known.eventId);
  });
});
