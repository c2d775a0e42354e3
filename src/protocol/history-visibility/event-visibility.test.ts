import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../json.ts';
import { isVisibleToServer, isVisibleToUser, type VisibilitySubject } from './event-visibility.ts';
import {
  type HistoryVisibility,
  historyVisibilityOf,
  type Membership,
  membershipOf,
} from './history-visibility.ts';

const USER = '@alice:example.org';
const VISIBILITIES: HistoryVisibility[] = ['world_readable', 'shared', 'invited', 'joined'];
const MEMBERSHIPS: Membership[] = ['join', 'invite', 'knock', 'leave', 'ban'];

const message: VisibilitySubject = { type: 'm.room.message', stateKey: undefined, content: { body: 'hi' } };
const member = (membership: string, stateKey = USER): VisibilitySubject => ({
  type: 'm.room.member',
  stateKey,
  content: { membership },
});
const visibilityChange = (history_visibility: string, stateKey = ''): VisibilitySubject => ({
  type: 'm.room.history_visibility',
  stateKey,
  content: { history_visibility },
});

/** For each visibility: what a message shows to join, invite, knock, leave, ban; `y` yes, `l` if joined later. */
const MESSAGE_TABLE: Record<HistoryVisibility, string> = {
  world_readable: 'yyyyy',
  shared: 'yllll',
  invited: 'yynnn',
  joined: 'ynnnn',
};

describe('isVisibleToUser', () => {
  for (const visibility of VISIBILITIES) {
    for (const [i, membership] of MEMBERSHIPS.entries()) {
      for (const joinedLater of [false, true]) {
        const expected = { y: true, n: false, l: joinedLater }[MESSAGE_TABLE[visibility][i]!];
        it(`${visibility}, ${membership}, joined later ${joinedLater}: ${expected}`, () => {
          const facts = { userId: USER, visibility, membership, joinedLater };
          assert.equal(isVisibleToUser(message, facts), expected);
        });
      }
    }
  }

  type Case = [
    why: string,
    event: VisibilitySubject,
    HistoryVisibility,
    Membership,
    joinedLater: boolean,
    boolean,
  ];
  const cases: Case[] = [
    ['own join', member('join'), 'joined', 'leave', false, true],
    ['own join after an invitation', member('join'), 'joined', 'invite', false, true],
    ['own leave', member('leave'), 'joined', 'join', false, true],
    ['own ban', member('ban'), 'joined', 'join', false, true],
    ['own invitation, invited', member('invite'), 'invited', 'leave', false, true],
    ['own invitation, joined', member('invite'), 'joined', 'leave', false, false],
    ['own knock', member('knock'), 'invited', 'leave', false, false],
    ['own rejected invitation, invited', member('leave'), 'invited', 'invite', false, true],
    ['own rejected invitation, joined', member('leave'), 'joined', 'invite', false, false],
    ['own unban', member('leave'), 'shared', 'ban', false, false],
    ['own unban, joined later', member('leave'), 'shared', 'ban', true, true],
    ["another's join", member('join', '@bob:example.org'), 'joined', 'leave', false, false],
    ['a message of that type', { ...member('join'), stateKey: undefined }, 'joined', 'leave', false, false],
    ['world_readable to joined', visibilityChange('joined'), 'world_readable', 'leave', false, true],
    ['joined to world_readable', visibilityChange('world_readable'), 'joined', 'leave', false, true],
    ['joined to shared', visibilityChange('shared'), 'joined', 'leave', true, true],
    ['joined to shared, never joined', visibilityChange('shared'), 'joined', 'leave', false, false],
    ['joined to invited, invited', visibilityChange('invited'), 'joined', 'invite', false, true],
    ['joined to nonsense is shared', visibilityChange('nonsense'), 'joined', 'leave', true, true],
    ['other state key', visibilityChange('world_readable', 'x'), 'joined', 'leave', true, false],
  ];
  for (const [why, event, visibility, membership, joinedLater, expected] of cases) {
    it(`${why}: ${expected}`, () => {
      assert.equal(isVisibleToUser(event, { userId: USER, visibility, membership, joinedLater }), expected);
    });
  }

  it('never throws and never hides the world-readable, whatever the content', () => {
    const type = fc.constantFrom('m.room.member', 'm.room.history_visibility', 'm.room.message');
    const stateKey = fc.constantFrom(undefined, '', USER);
    fc.assert(
      fc.property(type, stateKey, fc.dictionary(fc.string(), fc.jsonValue()), (type, stateKey, content) => {
        const event = { type, stateKey, content: content as JsonObject };
        const facts = { userId: USER, membership: 'leave', joinedLater: false } as const;
        assert.equal(isVisibleToUser(event, { ...facts, visibility: 'world_readable' }), true);
        assert.equal(typeof isVisibleToUser(event, { ...facts, visibility: 'joined' }), 'boolean');
      }),
    );
  });
});

describe('isVisibleToServer', () => {
  type Case = [
    why: string,
    VisibilitySubject,
    HistoryVisibility,
    Membership[],
    joinedLater: boolean,
    boolean,
  ];
  const cases: Case[] = [
    ['world_readable, nobody there', message, 'world_readable', [], false, true],
    ['shared, joined later', message, 'shared', [], true, true],
    ['shared, never joined', message, 'shared', ['invite', 'leave'], false, false],
    ['invited, one invited', message, 'invited', ['leave', 'invite'], false, true],
    ['invited, joined later', message, 'invited', ['leave'], true, false],
    ['joined, one joined', message, 'joined', ['ban', 'join'], false, true],
    ['joined, one invited', message, 'joined', ['invite'], true, false],
    ['the join of its user', member('join'), 'joined', [], false, true],
    ['the join of a stranger', member('join', '@bob:example.com'), 'joined', [], false, false],
    ['opening the history', visibilityChange('world_readable'), 'joined', [], false, true],
  ];
  for (const [why, event, visibility, memberships, joinedLater, expected] of cases) {
    it(`${why}: ${expected}`, () => {
      const facts = { serverName: 'example.org', visibility, memberships, joinedLater };
      assert.equal(isVisibleToServer(event, facts), expected);
    });
  }
});

describe('reading state content', () => {
  const odd: (JsonValue | undefined)[] = [
    undefined,
    null,
    'shared',
    [],
    {},
    { history_visibility: 'default' },
  ];
  for (const content of odd) {
    it(`${JSON.stringify(content)} is shared and leave`, () => {
      assert.equal(historyVisibilityOf(content), 'shared');
      assert.equal(membershipOf(content), 'leave');
    });
  }

  it('knows all values', () => {
    for (const value of VISIBILITIES) assert.equal(historyVisibilityOf({ history_visibility: value }), value);
    for (const value of MEMBERSHIPS) assert.equal(membershipOf({ membership: value }), value);
  });
});
