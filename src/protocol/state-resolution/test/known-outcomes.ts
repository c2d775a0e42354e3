/**
 * Forked rooms and the state that each must resolve to. The scenarios and their outcomes are facts from the tests of
 * ruma-state-res (https://github.com/ruma/ruma, MIT licence) and from MSC4297; ids and texts are our own.
 */
import type { EventRow } from './event-table.ts';

const ann = '@ann:a';
const bob = '@bob:a';
const cat = '@cat:a';
const dan = '@dan:a';
const eve = '@eve:a';
const zoe = '@zoe:a';

const join = { membership: 'join' };
const leave = { membership: 'leave' };
const ban = { membership: 'ban' };
const open = { join_rule: 'public' };
const invite = { join_rule: 'invite' };
const restricted = { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: '!other:a' }] };
const annOnly = { users: { [ann]: 100 } };
const bobModerates = { users: { [ann]: 100, [bob]: 50 } };
const bobDemoted = { users: { [ann]: 100, [bob]: 0 } };
const bobAndCatModerate = { users: { [ann]: 100, [bob]: 50, [cat]: 50 } };
const othersBelowZero = { ...bobModerates, users_default: -1 };

/** A room given by all its events, and the state after all of them. */
export interface KnownHistory {
  readonly name: string;
  readonly events: readonly EventRow[];
  /** The ids of the events in the resolved state. */
  readonly resolved: string;
}

/** Ann creates a room that users enter by invitation. */
const privateRoom: readonly EventRow[] = [
  ['create', ann, 'create', {}, '', '', 0],
  ['ann-joins', ann, `member ${ann}`, join, 'create', 'create', 1],
  ['levels-1', ann, 'power_levels', annOnly, 'ann-joins', 'create ann-joins', 2],
  ['invite-only', ann, 'join_rules', invite, 'levels-1', 'create ann-joins levels-1', 3],
  ['history', ann, 'history_visibility', {}, 'invite-only', 'create ann-joins levels-1', 4],
  ['guests', ann, 'guest_access', {}, 'history', 'create ann-joins levels-1', 5],
];

/** Ann creates a room that is open to all users, Bob joins, and she makes him a moderator. */
const publicRoom: readonly EventRow[] = [
  ['create', ann, 'create', {}, '', '', 0],
  ['ann-joins', ann, `member ${ann}`, join, 'create', 'create', 1],
  ['levels-1', ann, 'power_levels', annOnly, 'ann-joins', 'create ann-joins', 2],
  ['public', ann, 'join_rules', open, 'levels-1', 'create ann-joins levels-1', 3],
  ['history', ann, 'history_visibility', {}, 'public', 'create ann-joins levels-1', 4],
  ['guests', ann, 'guest_access', {}, 'history', 'create ann-joins levels-1', 5],
  ['bob-joins', bob, `member ${bob}`, join, 'guests', 'create levels-1 public', 6],
  ['levels-2', ann, 'power_levels', bobModerates, 'bob-joins', 'create levels-1 ann-joins', 7],
];

/** Histories of rooms of version 10. */
export const histories: readonly KnownHistory[] = [
  {
    name: 'a new private room, without a fork',
    events: privateRoom,
    resolved: 'create ann-joins levels-1 invite-only history guests',
  },
  {
    name: 'a new public room, without a fork',
    events: publicRoom,
    resolved: 'create ann-joins bob-joins levels-2 public history guests',
  },
  {
    name: 'two join rules of the same user, of which the later one has the smaller event id',
    events: [
      ...privateRoom,
      ['rule-2-restricted', ann, 'join_rules', restricted, 'guests', 'create ann-joins levels-1', 6],
      ['rule-2-public', ann, 'join_rules', open, 'guests', 'create ann-joins levels-1', 7],
    ],
    resolved: 'create ann-joins levels-1 rule-2-public history guests',
  },
  {
    name: 'a ban by the administrator against power levels set by the banned moderator',
    events: [
      ...publicRoom,
      ['bob-banned', ann, `member ${bob}`, ban, 'levels-2', 'create levels-2 ann-joins bob-joins', 8],
      ['levels-3', bob, 'power_levels', bobModerates, 'levels-2', 'create levels-2 bob-joins', 8],
    ],
    resolved: 'create ann-joins bob-banned levels-2 public history guests',
  },
  {
    name: 'a topic by a moderator against power levels that demote the moderator',
    events: [
      ...publicRoom,
      ['topic-by-ann', ann, 'topic', {}, 'levels-2', 'create levels-2 ann-joins', 8],
      ['levels-by-ann', ann, 'power_levels', bobDemoted, 'topic-by-ann', 'create levels-2 ann-joins', 9],
      ['topic-by-bob', bob, 'topic', {}, 'levels-2', 'create levels-2 bob-joins', 8],
    ],
    resolved: 'create ann-joins bob-joins levels-by-ann public topic-by-ann history guests',
  },
  {
    name: 'power levels set by the administrator against power levels set by a moderator',
    events: [
      ...publicRoom,
      ['levels-by-ann', ann, 'power_levels', bobDemoted, 'levels-2', 'create levels-2 ann-joins', 8],
      ['levels-by-bob', bob, 'power_levels', othersBelowZero, 'levels-2', 'create levels-2 bob-joins', 8],
    ],
    resolved: 'create ann-joins bob-joins levels-by-ann public history guests',
  },
  {
    name: 'a topic by a moderator against the ban of the moderator',
    events: [
      ...publicRoom,
      ['topic-1', ann, 'topic', {}, 'levels-2', 'create levels-2 ann-joins', 8],
      ['bob-banned', ann, `member ${bob}`, ban, 'topic-1', 'create levels-2 ann-joins bob-joins', 8],
      ['topic-2', bob, 'topic', {}, 'topic-1', 'create levels-2 bob-joins', 8],
    ],
    resolved: 'create ann-joins bob-banned levels-2 public topic-1 history guests',
  },
  {
    name: 'a join against a join rule that forbids it',
    events: [
      ...publicRoom,
      ['levels-3', bob, 'power_levels', bobModerates, 'levels-2', 'create levels-2 bob-joins', 8],
      ['rule-2-invite', ann, 'join_rules', invite, 'levels-3', 'create levels-3 ann-joins', 9],
      ['dan-joins', dan, `member ${dan}`, join, 'levels-3', 'create levels-3 public', 9],
    ],
    resolved: 'create ann-joins bob-joins levels-3 rule-2-invite history guests',
  },
  {
    name: 'joins of two users at the same time',
    events: [
      ...publicRoom,
      ['cat-joins', cat, `member ${cat}`, join, 'levels-2', 'create levels-2 public', 8],
      ['dan-joins', dan, `member ${dan}`, join, 'levels-2', 'create levels-2 public', 8],
    ],
    resolved: 'create ann-joins bob-joins cat-joins dan-joins levels-2 public history guests',
  },
];

/**
 * A room given by two of its states, and what they resolve to before MSC4297 (version 11) and since (version
 * 12).
 */
export interface KnownStates {
  readonly name: string;
  readonly events: readonly EventRow[];
  readonly states: readonly string[];
  /** The outcome by room version. */
  readonly resolved: Readonly<Record<'11' | '12', string>>;
}

/** The state resets of MSC4297. */
export const stateResets: readonly KnownStates[] = [
  {
    // The two states have different join rules, and in both the sender of these join rules has left. State
    // resolution v2 checks the join rules against that leave event and drops both; v2.1 starts from an empty
    // state.
    name: 'MSC4297 problem A: join rules of a creator who has left',
    events: [
      ['create', ann, 'create', {}, '', '', 0],
      ['ann-joins', ann, `member ${ann}`, join, 'create', 'create', 1],
      ['levels', ann, 'power_levels', annOnly, 'ann-joins', 'create ann-joins', 2],
      ['rule-1-public', ann, 'join_rules', open, 'levels', 'create ann-joins levels', 3],
      ['bob-joins', bob, `member ${bob}`, join, 'rule-1-public', 'create levels rule-1-public', 4],
      ['cat-joins', cat, `member ${cat}`, join, 'bob-joins', 'create levels rule-1-public', 5],
      ['rule-2-invite', ann, 'join_rules', invite, 'cat-joins', 'create ann-joins levels', 6],
      ['ann-leaves', ann, `member ${ann}`, leave, 'rule-2-invite', 'create ann-joins levels', 7],
      ['bob-renamed', bob, `member ${bob}`, join, 'ann-leaves', 'create levels bob-joins rule-2-invite', 8],
      ['cat-renamed', cat, `member ${cat}`, join, 'ann-leaves', 'create levels cat-joins rule-2-invite', 9],
    ],
    states: [
      'create levels cat-joins rule-2-invite ann-leaves bob-renamed',
      'create levels rule-1-public bob-joins ann-leaves cat-renamed',
    ],
    resolved: {
      '11': 'create ann-leaves bob-renamed cat-renamed levels',
      '12': 'create rule-2-invite ann-leaves bob-renamed cat-renamed levels',
    },
  },
  {
    // One state has the first power levels event and the other state the third. The second one, which allows
    // the third, is only in the conflicted state subgraph, which v2.1 considers and v2 does not.
    name: 'MSC4297 problem B: power levels that are allowed only by power levels in neither state',
    events: [
      ['create', ann, 'create', {}, '', '', 0],
      ['ann-joins', ann, `member ${ann}`, join, 'create', 'create', 1],
      ['levels-1', ann, 'power_levels', annOnly, 'ann-joins', 'create ann-joins', 2],
      ['public', ann, 'join_rules', open, 'levels-1', 'create ann-joins levels-1', 3],
      ['bob-joins', bob, `member ${bob}`, join, 'public', 'create levels-1 public', 4],
      ['cat-joins', cat, `member ${cat}`, join, 'bob-joins', 'create levels-1 public', 5],
      ['levels-2', ann, 'power_levels', bobModerates, 'cat-joins', 'create levels-1 ann-joins', 6],
      ['levels-3', bob, 'power_levels', bobAndCatModerate, 'levels-2', 'create levels-2 bob-joins', 7],
      ['zoe-joins', zoe, `member ${zoe}`, join, 'levels-3', 'create levels-3 public', 8],
      ['eve-joins', eve, `member ${eve}`, join, 'levels-3', 'create levels-3 public', 9],
      ['eve-renamed', eve, `member ${eve}`, join, 'eve-joins', 'create levels-3 eve-joins public', 9],
    ],
    states: [
      'create ann-joins levels-1 public bob-joins cat-joins eve-renamed',
      'create ann-joins levels-3 public bob-joins cat-joins zoe-joins',
    ],
    resolved: {
      '11': 'create ann-joins bob-joins cat-joins eve-renamed zoe-joins levels-1 public',
      '12': 'create ann-joins bob-joins cat-joins eve-renamed zoe-joins levels-3 public',
    },
  },
];
