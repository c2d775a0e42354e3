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

/**
 * Whether a message is visible, by history visibility: one letter for each of `MEMBERSHIPS`. `y`: yes, `n`: no, `l`: only
 * if the user joined later.
 */
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
        it(`returns ${expected} for visibility ${visibility}, membership ${membership}, joined later ${joinedLater}`, () => {
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
    ["the user's own join", member('join'), 'joined', 'leave', false, true],
    ["the user's own join after an invite", member('join'), 'joined', 'invite', false, true],
    ["the user's own leave", member('leave'), 'joined', 'join', false, true],
    ["the user's own ban", member('ban'), 'joined', 'join', false, true],
    ["the user's own invite with visibility invited", member('invite'), 'invited', 'leave', false, true],
    ["the user's own invite with visibility joined", member('invite'), 'joined', 'leave', false, false],
    ["the user's own knock", member('knock'), 'invited', 'leave', false, false],
    [
      "the user's rejection of an invite with visibility invited",
      member('leave'),
      'invited',
      'invite',
      false,
      true,
    ],
    [
      "the user's rejection of an invite with visibility joined",
      member('leave'),
      'joined',
      'invite',
      false,
      false,
    ],
    ["the user's unban", member('leave'), 'shared', 'ban', false, false],
    ["the user's unban if they joined later", member('leave'), 'shared', 'ban', true, true],
    ["another user's join", member('join', '@bob:example.org'), 'joined', 'leave', false, false],
    [
      'a message of type m.room.member',
      { ...member('join'), stateKey: undefined },
      'joined',
      'leave',
      false,
      false,
    ],
    [
      'a change from world_readable to joined',
      visibilityChange('joined'),
      'world_readable',
      'leave',
      false,
      true,
    ],
    [
      'a change from joined to world_readable',
      visibilityChange('world_readable'),
      'joined',
      'leave',
      false,
      true,
    ],
    [
      'a change from joined to shared if the user joined later',
      visibilityChange('shared'),
      'joined',
      'leave',
      true,
      true,
    ],
    [
      'a change from joined to shared if the user never joined',
      visibilityChange('shared'),
      'joined',
      'leave',
      false,
      false,
    ],
    [
      'a change from joined to invited if the user is invited',
      visibilityChange('invited'),
      'joined',
      'invite',
      false,
      true,
    ],
    [
      'a change from joined to an unknown value, which counts as shared',
      visibilityChange('nonsense'),
      'joined',
      'leave',
      true,
      true,
    ],
    [
      'a visibility event with another state key',
      visibilityChange('world_readable', 'x'),
      'joined',
      'leave',
      true,
      false,
    ],
  ];
  for (const [why, event, visibility, membership, joinedLater, expected] of cases) {
    it(`returns ${expected} for ${why}`, () => {
      assert.equal(isVisibleToUser(event, { userId: USER, visibility, membership, joinedLater }), expected);
    });
  }

  it('never throws and never hides world-readable events', () => {
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
    ['visibility world_readable without users of the server', message, 'world_readable', [], false, true],
    ['visibility shared if a user joined later', message, 'shared', [], true, true],
    ['visibility shared if no user joined', message, 'shared', ['invite', 'leave'], false, false],
    ['visibility invited with an invited user', message, 'invited', ['leave', 'invite'], false, true],
    ['visibility invited if a user joined later', message, 'invited', ['leave'], true, false],
    ['visibility joined with a joined user', message, 'joined', ['ban', 'join'], false, true],
    ['visibility joined with an invited user', message, 'joined', ['invite'], true, false],
    ["the join of the server's own user", member('join'), 'joined', [], false, true],
    ["the join of another server's user", member('join', '@bob:example.com'), 'joined', [], false, false],
    ['a change from joined to world_readable', visibilityChange('world_readable'), 'joined', [], false, true],
  ];
  for (const [why, event, visibility, memberships, joinedLater, expected] of cases) {
    it(`returns ${expected} for ${why}`, () => {
      const facts = { serverName: 'example.org', visibility, memberships, joinedLater };
      assert.equal(isVisibleToServer(event, facts), expected);
    });
  }
});

describe('historyVisibilityOf and membershipOf', () => {
  const invalidContents: (JsonValue | undefined)[] = [
    undefined,
    null,
    'shared',
    [],
    {},
    { history_visibility: 'default' },
  ];
  for (const content of invalidContents) {
    it(`historyVisibilityOf returns shared and membershipOf returns leave for ${JSON.stringify(content)}`, () => {
      assert.equal(historyVisibilityOf(content), 'shared');
      assert.equal(membershipOf(content), 'leave');
    });
  }

  it('historyVisibilityOf and membershipOf return every valid value', () => {
    for (const value of VISIBILITIES) assert.equal(historyVisibilityOf({ history_visibility: value }), value);
    for (const value of MEMBERSHIPS) assert.equal(membershipOf({ membership: value }), value);
  });
});
