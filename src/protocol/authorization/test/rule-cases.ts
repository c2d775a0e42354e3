import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RoomEvent, stateMapKey } from '../../event.ts';
import type { JsonObject, JsonValue } from '../../json.ts';
import { type RoomVersion, roomVersions } from '../../room-versions.ts';
import { authorize } from '../index.ts';
import { createId, type EventFields, lookupIn, testEvent } from './test-events.ts';

/** The users of the test rooms. */
export const creator = '@creator:a.example';
export const moderator = '@moderator:a.example';
export const member = '@member:b.example';
export const stranger = '@stranger:b.example';

/** Returns the room versions from the number `from` to the number `to`, including both. */
export function versions(from: number, to = 12): RoomVersion[] {
  return [...roomVersions.values()].filter(({ id }) => from <= Number(id) && Number(id) <= to);
}

/** An event that a rule allows or rejects. */
export interface RuleCase {
  /** The number of the rule in room version 12; `v1` and the number in room version 1 if version 12 does not have it. */
  readonly rule: string;
  readonly description: string;
  readonly versions: readonly RoomVersion[];
  readonly allowed: boolean;
  readonly event: EventFields;
  /** State events that are added to `usualState` or replace a part of it. */
  readonly state?: readonly EventFields[];
  /** Keys of `usualState` that are removed. */
  readonly without?: readonly string[];
}

/** Declares a test for each case. The test covers all versions of the case. */
export function testRules(cases: readonly RuleCase[]): void {
  for (const { rule, description, versions, allowed, event, state = [], without = [] } of cases) {
    test(`${allowed ? 'allows' : 'rejects'} ${description} (rule ${rule})`, () => {
      assert(versions.length > 0);
      for (const version of versions) {
        const lookup = lookupIn(stateWith(version, state, without));
        const verdict = authorize(testEvent(version, event), lookup);
        const reason = verdict.allowed ? 'allowed' : verdict.reason;
        assert.equal(verdict.allowed, allowed, `version ${version.id}: ${reason}`);
      }
    });
  }
}

function stateWith(
  version: RoomVersion,
  changes: readonly EventFields[],
  without: readonly string[],
): RoomEvent[] {
  const state = new Map<string, RoomEvent>();
  for (const fields of [...usualState(version), ...changes]) {
    const event = testEvent(version, fields);
    state.set(stateMapKey(event.type, event.stateKey!), event);
  }
  for (const key of without) state.delete(key);
  return [...state.values()];
}

/** The state of a room with a creator, a moderator and a member. The join rule is `invite`. */
function usualState(version: RoomVersion): EventFields[] {
  const users = version.privilegedCreators ? { [moderator]: 50 } : { [creator]: 100, [moderator]: 50 };
  return [
    create(version.creator === 'content' ? { creator } : {}),
    membership(creator, 'join'),
    membership(moderator, 'join'),
    membership(member, 'join'),
    levels({ users }),
    joinRule('invite'),
  ];
}

export function create(content: JsonObject): EventFields {
  return {
    type: 'm.room.create',
    sender: creator,
    stateKey: '',
    content,
    eventId: createId,
    prevEventIds: [],
  };
}

/** A membership that the user sets, or that the user `by` sets. */
export function membership(user: string, value: JsonValue, by = user, more: JsonObject = {}): EventFields {
  return { type: 'm.room.member', sender: by, stateKey: user, content: { membership: value, ...more } };
}

export function levels(content: JsonObject, sender = creator): EventFields {
  return { type: 'm.room.power_levels', sender, stateKey: '', content };
}

export function joinRule(rule: JsonValue): EventFields {
  return { type: 'm.room.join_rules', sender: creator, stateKey: '', content: { join_rule: rule } };
}

export function message(sender: string, more: Partial<EventFields> = {}): EventFields {
  return { type: 'm.room.message', sender, ...more };
}

/** Keys of the state map, for `RuleCase.without`. */
export const powerLevelsKey = stateMapKey('m.room.power_levels', '');
export const joinRulesKey = stateMapKey('m.room.join_rules', '');
export const createKey = stateMapKey('m.room.create', '');
