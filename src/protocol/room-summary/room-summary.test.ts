import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Membership } from '../history-visibility/history-visibility.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { MAX_HEROES, type SummaryMember, selectHeroes } from './heroes.ts';
import { roomFactsOf } from './room-facts.ts';
import { roomSummaryOf } from './room-summary.ts';

describe('selectHeroes', () => {
  const members = (text: string): SummaryMember[] =>
    text.split(' ').map((entry) => {
      const [userId = '', membership] = entry.split('=');
      return [userId, membership as Membership];
    });
  const cases: [members: string, heroes: string][] = [
    ['me=join', ''],
    ['me=join a=join b=invite c=leave d=knock', 'a b'],
    ['a=join me=join b=join c=join d=join e=invite f=join', 'a b c d e'],
    ['a=leave b=ban me=join c=knock', 'a b'],
    ['a=leave b=leave me=leave c=leave d=leave e=ban f=leave', 'a b c d e'],
    ['a=leave b=leave c=leave d=leave e=ban f=leave me=join g=invite', 'g'],
  ];
  for (const [list, heroes] of cases) {
    it(`selects ${heroes || 'no heroes'} from ${list}`, () => {
      assert.equal(selectHeroes(members(list), 'me').join(' '), heroes);
    });
  }

  it('reads no further than the fifth hero', () => {
    function* endless(): Generator<SummaryMember> {
      for (let i = 0; ; i++) yield [`u${i}`, 'join'];
    }
    assert.equal(selectHeroes(endless(), 'me').length, MAX_HEROES);
  });
});

describe('roomSummaryOf', () => {
  const facts = { heroes: ['@a:x'], joinedCount: 2, invitedCount: 1 };
  const counts = { 'm.joined_member_count': 2, 'm.invited_member_count': 1 };

  it('includes heroes in rooms without name and alias', () => {
    const summary = roomSummaryOf({ ...facts, name: '', canonicalAlias: undefined });
    assert.deepEqual(summary, { 'm.heroes': ['@a:x'], ...counts });
  });

  it('returns no heroes for a room with a name or a canonical alias', () => {
    assert.deepEqual(roomSummaryOf({ ...facts, name: 'Tea', canonicalAlias: undefined }), counts);
    assert.deepEqual(roomSummaryOf({ ...facts, name: undefined, canonicalAlias: '#tea:x' }), counts);
  });
});

describe('roomFactsOf', () => {
  const state = (contents: Record<string, JsonObject>) => (type: string, stateKey: string) =>
    stateKey === '' ? contents[type] : undefined;

  it('takes the topic from its plain text representation if there are representations', () => {
    const topicOf = (content: JsonObject) => roomFactsOf(state({ 'm.room.topic': content })).topic;
    const html = { mimetype: 'text/html', body: '<b>Tea</b>' };
    const representations = (...blocks: JsonValue[]) => ({ topic: 'Old', 'm.topic': { 'm.text': blocks } });
    assert.equal(topicOf(representations(html, { body: 'Tea' })), 'Tea');
    assert.equal(topicOf(representations(html, { mimetype: 'text/plain', body: 'Tea' })), 'Tea');
    assert.equal(topicOf(representations(html)), undefined);
    assert.equal(topicOf(representations(5, null)), undefined);
    assert.equal(topicOf({ topic: 'Old', 'm.topic': { 'm.text': 'Tea' } }), 'Old');
  });

  it('reads the facts from the state of a room', () => {
    const allow = [
      { type: 'm.room_membership', room_id: '!space:x' },
      { type: 'm.room_membership', room_id: '!space:x' },
      { type: 'm.room_membership', room_id: 'space' },
      { type: 'org.example', room_id: '!other:x' },
      null,
    ];
    const facts = roomFactsOf(
      state({
        'm.room.create': { room_version: '11', type: 'm.space' },
        'm.room.name': { name: 'Tea' },
        'm.room.topic': { topic: 'Leaves' },
        'm.room.avatar': { url: 'mxc://x/y' },
        'm.room.canonical_alias': { alias: '#tea:x' },
        'm.room.join_rules': { join_rule: 'restricted', allow },
        'm.room.guest_access': { guest_access: 'can_join' },
        'm.room.history_visibility': { history_visibility: 'world_readable' },
        'm.room.encryption': { algorithm: 'm.megolm.v1.aes-sha2' },
      }),
    );
    assert.deepEqual(facts, {
      name: 'Tea',
      canonicalAlias: '#tea:x',
      topic: 'Leaves',
      avatarUrl: 'mxc://x/y',
      joinRule: 'restricted',
      allowedRoomIds: ['!space:x'],
      guestCanJoin: true,
      worldReadable: true,
      roomType: 'm.space',
      encryption: 'm.megolm.v1.aes-sha2',
      roomVersion: '11',
    });
  });

  const defaultFacts = {
    name: undefined,
    canonicalAlias: undefined,
    topic: undefined,
    avatarUrl: undefined,
    joinRule: 'invite',
    allowedRoomIds: [],
    guestCanJoin: false,
    worldReadable: false,
    roomType: undefined,
    encryption: undefined,
    roomVersion: '1',
  };

  it('returns the defaults of the specification for an empty state', () => {
    assert.deepEqual(roomFactsOf(state({})), defaultFacts);
  });

  it('takes malformed values as absent', () => {
    const malformed = {
      name: 1,
      alias: 'tea',
      topic: [],
      url: null,
      join_rule: {},
      type: 5,
      room_version: 11,
      algorithm: '',
    };
    assert.deepEqual(
      roomFactsOf(() => malformed),
      defaultFacts,
    );
  });

  it('lists allowed rooms only for restricted join rules', () => {
    const allow = [{ type: 'm.room_membership', room_id: '!space:x' }];
    const allowed = (join_rule: string) =>
      roomFactsOf(state({ 'm.room.join_rules': { join_rule, allow } })).allowedRoomIds;
    assert.deepEqual(['public', 'invite', 'knock', 'restricted', 'knock_restricted'].map(allowed), [
      [],
      [],
      [],
      ['!space:x'],
      ['!space:x'],
    ]);
  });

  it('reads arbitrary JSON as content without throwing', () => {
    const properties = [
      'name',
      'alias',
      'topic',
      'url',
      'join_rule',
      'allow',
      'guest_access',
      'history_visibility',
    ];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...properties), fc.jsonValue()), (content) => {
        assert.equal(typeof roomFactsOf(() => content as Record<string, JsonValue>).joinRule, 'string');
      }),
    );
  });
});
