import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { splitStateMapKey } from '../event.ts';
import type { JsonValue } from '../json.ts';
import { roomVersions } from '../room-versions.ts';
import { selectAuthEventKeys } from './select-auth-events.ts';
import { membership } from './test/rule-cases.ts';
import { type EventFields, testEvent, version } from './test/test-events.ts';

/** Returns the selection as `type|state key`, without the create event. */
function select(number: number, fields: EventFields): string[] {
  const keys = selectAuthEventKeys(testEvent(version(number), fields), version(number));
  assert.equal(new Set(keys).size, keys.length);
  const names = keys.map((key) => splitStateMapKey(key).join('|').replace('m.room.', ''));
  return names.filter((name) => name !== 'create|');
}

const [ann, bob, cat] = ['@ann:a', '@bob:b', '@cat:c'] as const;

describe('selectAuthEventKeys', () => {
  test('selects nothing for the create event', () => {
    const create = { type: 'm.room.create', sender: ann, stateKey: '' };
    for (const roomVersion of roomVersions.values()) {
      assert.deepEqual(selectAuthEventKeys(testEvent(roomVersion, create), roomVersion), []);
    }
  });

  test('selects the create event up to v11', () => {
    const event = { type: 'm.room.message', sender: ann };
    for (const roomVersion of roomVersions.values()) {
      const keys = selectAuthEventKeys(testEvent(roomVersion, event), roomVersion);
      const hasCreate = keys.some((key) => splitStateMapKey(key)[0] === 'm.room.create');
      assert.equal(hasCreate, roomVersion.id !== '12');
    }
  });

  test("selects the power levels and the sender's membership for a message", () => {
    assert.deepEqual(select(11, { type: 'm.room.message', sender: ann }), ['power_levels|', `member|${ann}`]);
  });

  test('selects also the membership of the target for m.room.member events, and the join rules for joins, invites and knocks', () => {
    const base = ['power_levels|', `member|${ann}`];
    assert.deepEqual(select(11, membership(bob, 'leave', ann)), [...base, `member|${bob}`]);
    assert.deepEqual(select(11, membership(bob, 'ban', ann)), [...base, `member|${bob}`]);
    assert.deepEqual(select(11, membership(bob, 'invite', ann)), [...base, `member|${bob}`, 'join_rules|']);
    assert.deepEqual(select(11, membership(ann, 'join')), [...base, 'join_rules|']);
    assert.deepEqual(select(11, membership(ann, 'knock')), [...base, 'join_rules|']);
    assert.deepEqual(select(11, membership(ann, 'unknown')), base);
  });

  test('selects the third-party invite for an invite', () => {
    const invite = (value: JsonValue, kind = 'invite') =>
      select(11, membership(bob, kind, ann, { third_party_invite: value })).at(-1);
    assert.equal(invite({ signed: { token: 'x' } }), 'third_party_invite|x');
    assert.equal(invite({ signed: { token: '' } }), 'third_party_invite|');
    for (const other of [null, 'x', {}, { signed: null }, { signed: { token: 1 } }, [{ token: 'x' }]]) {
      assert.equal(invite(other), 'join_rules|');
    }
    assert.equal(invite({ signed: { token: 'x' } }, 'leave'), `member|${bob}`);
  });

  test('selects the membership of the user who authorised a join since v8', () => {
    const join = (number: number, via: JsonValue, kind = 'join') =>
      select(number, membership(ann, kind, ann, { join_authorised_via_users_server: via })).at(-1);
    assert.equal(join(8, cat), `member|${cat}`);
    assert.equal(join(7, cat), 'join_rules|');
    assert.equal(join(8, ann), 'join_rules|');
    assert.equal(join(8, 1), 'join_rules|');
    assert.equal(join(8, cat, 'invite'), 'join_rules|');
  });
});
