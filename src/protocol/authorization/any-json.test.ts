import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { stateMapKey } from '../event.ts';
import type { JsonObject } from '../json.ts';
import { roomVersions } from '../room-versions.ts';
import { authorize } from './authorize.ts';
import { checkAuthEvents } from './check-auth-events.ts';
import { selectAuthEventKeys } from './select-auth-events.ts';
import { createId, type EventFields, testEvent } from './test/test-events.ts';

const users = ['@ann:a.example', '@bob:b.example', 'nobody', ''];

/**
 * Values that the rules read. With arbitrary values alone, the first check would reject nearly every event.
 */
const likely = fc.oneof(
  fc.constantFrom('join', 'leave', 'invite', 'ban', 'knock', 'public', 'restricted', 'knock_restricted'),
  fc.constantFrom(...users),
  fc.constantFrom(0, 50, 100, '50', 1.5, null, true),
  fc.constantFrom({}, [], { signed: {} }, { signed: { mxid: users[0], token: '' } }),
  fc.dictionary(fc.constantFrom(...users, '__proto__', 'constructor'), fc.constantFrom(0, 50, '7', null, {})),
);

const properties = [
  ...['membership', 'join_rule', 'third_party_invite', 'join_authorised_via_users_server', 'creator'],
  ...['additional_creators', 'm.federate', 'room_version', 'public_key', 'public_keys', 'signed'],
  ...['users', 'events', 'notifications', 'users_default', 'events_default', 'state_default'],
  ...['ban', 'kick', 'redact', 'invite', '__proto__', 'constructor', 'toString'],
];

const content = fc.dictionary(
  fc.constantFrom(...properties),
  fc.oneof({ weight: 3, arbitrary: likely }, { weight: 1, arbitrary: fc.jsonValue() }),
) as fc.Arbitrary<JsonObject>;

const types = [
  ...['m.room.create', 'm.room.member', 'm.room.power_levels', 'm.room.join_rules', 'm.room.aliases'],
  ...['m.room.third_party_invite', 'm.room.redaction', 'm.room.message', '__proto__'],
];

const anyEvent: fc.Arbitrary<EventFields> = fc.record({
  type: fc.oneof(fc.constantFrom(...types), fc.string()),
  sender: fc.oneof(fc.constantFrom(...users), fc.string()),
  stateKey: fc.option(fc.oneof(fc.constantFrom(...users), fc.string()), { nil: undefined }),
  content,
  eventId: fc.oneof(fc.constantFrom(createId, '$x', ''), fc.string()),
  redacts: fc.oneof(fc.constantFrom('$x:a.example', ''), fc.string()),
  prevEventIds: fc.constantFrom([], [createId], ['$x', createId]),
  authEventIds: fc.constantFrom([], [createId], ['$x', createId]),
});

const anyVersion = fc.constantFrom(...roomVersions.values());

test('authorize returns a verdict for any event in any state, and looks up only events of the auth events selection and the create event', () => {
  let allowed = 0;
  fc.assert(
    fc.property(
      anyVersion,
      anyEvent,
      fc.array(anyEvent),
      fc.boolean(),
      (version, fields, others, isJoined) => {
        const event = testEvent(version, fields);
        const room: EventFields = {
          type: 'm.room.create',
          sender: users[0]!,
          stateKey: '',
          eventId: createId,
        };
        const joined: EventFields = {
          type: 'm.room.member',
          sender: fields.sender,
          stateKey: fields.sender,
          content: { membership: 'join' },
        };
        const state = new Map(
          [...(isJoined ? [room, joined] : []), ...others].map((other) => [
            stateMapKey(other.type, other.stateKey ?? ''),
            testEvent(version, other),
          ]),
        );
        const allowedKeys = new Set([
          ...selectAuthEventKeys(event, version),
          stateMapKey('m.room.create', ''),
        ]);
        const verdict = authorize(event, (type, stateKey) => {
          const key = stateMapKey(type, stateKey);
          assert(allowedKeys.has(key), `looked up ${key}`);
          return state.get(key);
        });
        if (verdict.allowed) allowed++;
        else assert(verdict.reason.length > 0);
      },
    ),
    { numRuns: runs(10_000) },
  );
  assert(allowed > runs(500), `only ${allowed} were allowed`);
});

test('checkAuthEvents returns a verdict for any list of auth events', () => {
  fc.assert(
    fc.property(anyVersion, anyEvent, fc.array(anyEvent), (version, fields, others) => {
      const events = new Map(
        others.map((other) => [other.eventId ?? '', testEvent(version, other)] as const),
      );
      const { allowed } = checkAuthEvents(testEvent(version, fields), {
        event: (id) => events.get(id),
        isRejected: (id) => id.length % 2 === 1,
      });
      assert.equal(typeof allowed, 'boolean');
    }),
    { numRuns: runs(3000) },
  );
});
