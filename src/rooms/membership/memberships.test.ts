import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { forSelectedDatabases, type OpenDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, type RoomsTuning, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { forbidden, MatrixError } from '../../protocol/index.ts';

const states = ['none', 'invite', 'join', 'leave', 'ban', 'knock'] as const;
type State = (typeof states)[number];

type Outcome = 'ok' | 403 | 404;

/** Outcomes of an action for each of `states`: `y` ok, `n` 403, `?` 404. */
const outcomes = (row: string): Outcome[] =>
  [...row].map((letter) => (letter === 'y' ? 'ok' : letter === 'n' ? 403 : 404));

/** Outcomes of a join by join rule, in the order of `states`. */
const joinOutcomes = {
  public: 'yyyyny',
  invite: 'nyynnn',
  knock: 'nyynnn',
  restricted: 'nyynnn',
  knock_restricted: 'nyynnn',
  private: 'nnynnn',
};

/** Outcomes of a join by a member of the room in the `allow` list of the join rule. */
const joinOutcomesFromAllowedRoom = { restricted: 'yyyyny', knock_restricted: 'yyyyny', invite: 'nyynnn' };

/** Outcomes of a knock by join rule, in the order of `states`; a repeated knock succeeds without effect. */
const knockOutcomes = {
  public: 'nnnnny',
  invite: 'nnnnny',
  knock: 'ynnyny',
  restricted: 'nnnnny',
  knock_restricted: 'ynnyny',
  private: 'nnnnny',
};

const leaveOutcomes = '?yyyny';

/** Outcomes of a moderator's actions for a user in each of `states`. */
const moderatorOutcomes = { invite: 'yynyny', kick: 'nyynny', ban: 'yyyyyy', unban: 'nnnnyn' };

/**
 * Creates a room of alice where bob has the membership `state`.
 * @param rule join rule of the room
 * @param allowed id of the room whose members the join rule allows to join
 * @returns the id of the room
 */
async function roomWith(
  fixture: RoomsUnderTest,
  state: State,
  rule: string,
  allowed?: string,
): Promise<string> {
  const { memberships, sending, creation } = fixture.rooms;
  const roomId = await creation.create(alice, {
    preset: 'private_chat',
    initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
  });
  if (state === 'ban') await memberships.ban(alice, roomId, bob);
  if (state === 'knock') await memberships.knock(bob, roomId);
  if (state === 'invite' || state === 'join' || state === 'leave')
    await memberships.invite(alice, roomId, bob);
  if (state === 'join' || state === 'leave') await memberships.join(bob, roomId);
  if (state === 'leave') await memberships.leave(bob, roomId);
  const content = {
    join_rule: rule,
    ...(allowed && { allow: [{ type: 'm.room_membership', room_id: allowed }] }),
  };
  const sender = { userId: alice, deviceId: undefined };
  await sending.state(sender, roomId, { type: 'm.room.join_rules', stateKey: '' }, content);
  return roomId;
}

async function outcomeOf(action: Promise<unknown>): Promise<Outcome> {
  try {
    await action;
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof MatrixError, String(error));
    assert.match(error.errcode, error.status === 404 ? /^M_NOT_FOUND$/ : /^M_(FORBIDDEN|BAD_STATE)$/);
    return error.status as Outcome;
  }
}

/** Sets a membership by sending a membership event. */
function setMembershipState(
  fixture: RoomsUnderTest,
  sender: string,
  roomId: string,
  target: string,
  membership: string,
) {
  const stateEvent = { type: 'm.room.member', stateKey: target };
  return fixture.rooms.sending.state({ userId: sender, deviceId: undefined }, roomId, stateEvent, {
    membership,
  });
}

type Act = (fixture: RoomsUnderTest, roomId: string) => Promise<unknown>;

/** Describes the outcomes of an action for a test title, by the memberships of the user before it. */
function summaryOf(row: string): string {
  const parts = [
    ['y', 'succeeds after the membership'],
    ['n', 'is refused with 403 after the membership'],
    ['?', 'is refused with 404 after the membership'],
  ] as const;
  const described = parts.map(([letter, text]) => {
    const names = states.filter((_, index) => row[index] === letter);
    return names.length === 0 ? '' : `${text} ${names.join(', ')}`;
  });
  return described.filter((text) => text !== '').join('; ');
}

/** The two ways to change a membership: its endpoint, and a membership event. */
const ways = (endpoint: Act, sender: string, membership: string): [way: string, Act][] => [
  ['its endpoint', endpoint],
  ['a membership event', (fixture, roomId) => setMembershipState(fixture, sender, roomId, bob, membership)],
];

function testOutcomes(open: OpenDatabase) {
  let fixture: RoomsUnderTest;
  let allowed: string;
  before(async () => {
    fixture = await RoomsUnderTest.open(open);
    allowed = await fixture.room(carol, bob);
  });
  const check = (name: string, row: string, rule: string, act: Act, isAllowed = false) =>
    it(`${name} ${summaryOf(row)}`, async () => {
      const results: Outcome[] = [];
      for (const state of states) {
        const roomId = await roomWith(fixture, state, rule, isAllowed ? allowed : undefined);
        results.push(await outcomeOf(act(fixture, roomId)));
      }
      assert.deepEqual(results, outcomes(row), states.join(' '));
    });
  for (const [rule, row] of Object.entries(joinOutcomes)) {
    for (const [way, act] of ways(
      (fixture, roomId) => fixture.rooms.memberships.join(bob, roomId),
      bob,
      'join',
    ))
      check(`joining a room with the join rule ${rule} by ${way}`, row, rule, act);
  }
  for (const [rule, row] of Object.entries(joinOutcomesFromAllowedRoom)) {
    const join: Act = (fixture, roomId) => fixture.rooms.memberships.join(bob, roomId);
    check(`joining a room with the join rule ${rule} from an allowed room`, row, rule, join, true);
  }
  for (const [rule, row] of Object.entries(knockOutcomes)) {
    for (const [way, act] of ways(
      (fixture, roomId) => fixture.rooms.memberships.knock(bob, roomId),
      bob,
      'knock',
    ))
      check(`knocking on a room with the join rule ${rule} by ${way}`, row, rule, act);
  }
  for (const [way, act] of ways(
    (fixture, roomId) => fixture.rooms.memberships.leave(bob, roomId),
    bob,
    'leave',
  ))
    check(`leaving by ${way}`, leaveOutcomes, 'invite', act);
  for (const action of ['invite', 'kick', 'ban', 'unban'] as const) {
    const act: Act = (fixture, roomId) => fixture.rooms.memberships[action](alice, roomId, bob);
    check(`${action} by a moderator`, moderatorOutcomes[action], 'invite', act);
  }
  const stateOutcomes = { invite: moderatorOutcomes.invite, ban: moderatorOutcomes.ban, leave: 'nyynyy' };
  for (const [membership, row] of Object.entries(stateOutcomes)) {
    const act: Act = (fixture, roomId) => setMembershipState(fixture, alice, roomId, bob, membership);
    check(`a membership event of a moderator with the membership ${membership}`, row, 'invite', act);
  }
  for (const membership of ['join', 'knock']) {
    const act: Act = (fixture, roomId) => setMembershipState(fixture, alice, roomId, bob, membership);
    check(`a membership event for another user with the membership ${membership}`, 'nnnnnn', 'public', act);
  }
  for (const action of ['invite', 'kick', 'ban', 'unban'] as const) {
    const act: Act = (fixture, roomId) => fixture.rooms.memberships[action](carol, roomId, bob);
    check(`${action} by a user who is not in the room`, 'nnnnnn', 'invite', act);
  }
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('outcomes of membership changes by the membership before them', () => testOutcomes(open));

  it('answers 403 M_BAD_STATE to an unban of a user who is not banned', async () => {
    const { rooms } = await RoomsUnderTest.open(open);
    const roomId = await rooms.creation.create(alice, { preset: 'private_chat', invite: [bob] });
    for (const userId of [bob, carol]) {
      const refused = { status: 403, errcode: 'M_BAD_STATE' };
      await assert.rejects(rooms.memberships.unban(alice, roomId, userId), refused);
    }
    const refused = { status: 403, errcode: 'M_FORBIDDEN' };
    await assert.rejects(rooms.memberships.unban(bob, roomId, carol), refused, 'not a member');
  });

  describe('the content of membership events', () => {
    const withProfiles = (options: RoomsTuning['options'] = {}) =>
      RoomsUnderTest.open(open, [], {
        options,
        profiles: {
          profile: async (userId) => ({ displayname: `Name of ${userId}`, avatar_url: 'mxc://test/a' }),
        },
      });

    const contentOf = async (fixture: RoomsUnderTest, roomId: string, userId: string) => {
      const entry = (await fixture.engine.heads.get(roomId))?.entry('m.room.member', userId);
      return entry && (await fixture.engine.events.get(entry.nid))?.event.content;
    };

    const setMemberOfBob = (fixture: RoomsUnderTest, roomId: string, content: object) =>
      fixture.rooms.sending.state(
        { userId: bob, deviceId: undefined },
        roomId,
        { type: 'm.room.member', stateKey: bob },
        { membership: 'join', ...content },
      );

    it('puts the profile of joined and invited users into membership events, and not the profile of users who leave', async () => {
      const fixture = await withProfiles();
      const roomId = await fixture.room(alice, bob);
      const profile = { displayname: `Name of ${bob}`, avatar_url: 'mxc://test/a' };
      assert.deepEqual(await contentOf(fixture, roomId, bob), { ...profile, membership: 'join' });
      await fixture.rooms.memberships.leave(bob, roomId, { extraContent: { reason: 'bored' } });
      assert.deepEqual(await contentOf(fixture, roomId, bob), { reason: 'bored', membership: 'leave' });
      await fixture.rooms.memberships.invite(alice, roomId, bob, { extraContent: { reason: 'please' } });
      const invited = { ...profile, reason: 'please', membership: 'invite' };
      assert.deepEqual(await contentOf(fixture, roomId, bob), invited);
    });

    it('keeps a per-room profile and unknown content keys in a membership event, and removes an authorising user that the client names', async () => {
      const fixture = await withProfiles();
      const roomId = await fixture.room(alice, bob);
      await setMemberOfBob(fixture, roomId, {
        displayname: 'Other',
        more: 1,
        join_authorised_via_users_server: alice,
      });
      const content = { displayname: 'Other', avatar_url: 'mxc://test/a', more: 1, membership: 'join' };
      assert.deepEqual(await contentOf(fixture, roomId, bob), content);
    });

    it('leaves the membership event unchanged at a repeated join', async () => {
      const fixture = await withProfiles();
      const roomId = await fixture.room(alice, bob);
      await setMemberOfBob(fixture, roomId, { displayname: 'Other' });
      await fixture.join(bob, roomId);
      assert.equal((await contentOf(fixture, roomId, bob))?.['displayname'], 'Other');
    });

    it('omits the profile of invited users (include_profile_data_on_invite: false)', async () => {
      const fixture = await withProfiles({ include_profile_data_on_invite: false });
      const roomId = await fixture.room(alice);
      await fixture.rooms.memberships.invite(alice, roomId, bob);
      assert.deepEqual(await contentOf(fixture, roomId, bob), { membership: 'invite' });
    });

    it('uses the global profile in every room (allow_per_room_profiles: false)', async () => {
      const fixture = await withProfiles({ allow_per_room_profiles: false });
      const roomId = await fixture.room(alice, bob);
      const before = await contentOf(fixture, roomId, bob);
      await setMemberOfBob(fixture, roomId, { displayname: 'Other', avatar_url: 'mxc://test/b' });
      assert.deepEqual(await contentOf(fixture, roomId, bob), before);
    });

    it('refuses an avatar_url in a membership event that is not allowed as an avatar; accepts an empty one, and any where allow_per_room_profiles is false', async () => {
      const checkAvatar = async (url: string) => {
        if (url === 'mxc://test/large') throw forbidden('This file is too large for an avatar');
      };
      const profiles = { profile: async () => ({ avatar_url: 'mxc://test/large' }), checkAvatar };
      const fixture = await RoomsUnderTest.open(open, [], { profiles });
      const roomId = await fixture.room(alice, bob);
      const refused = { status: 403, errcode: 'M_FORBIDDEN' };
      await assert.rejects(setMemberOfBob(fixture, roomId, { avatar_url: 'mxc://test/large' }), refused);
      for (const avatar_url of ['mxc://test/small', '']) {
        await setMemberOfBob(fixture, roomId, { avatar_url });
        assert.deepEqual(await contentOf(fixture, roomId, bob), { avatar_url, membership: 'join' });
      }
      const { memberships } = fixture.rooms;
      const extraContent = { avatar_url: 'mxc://test/large' };
      await assert.rejects(memberships.invite(alice, roomId, carol, { extraContent }), refused);
      await assert.rejects(memberships.leave(bob, roomId, { extraContent }), refused);
      const globalOnly = await RoomsUnderTest.open(open, [], {
        options: { allow_per_room_profiles: false },
        profiles,
      });
      const other = await globalOnly.room(alice, bob);
      await setMemberOfBob(globalOnly, other, { avatar_url: 'mxc://test/large' });
    });

    it('names the authorising user in a join to a restricted room', async () => {
      const fixture = await withProfiles();
      const allowed = await fixture.room(carol, bob);
      const roomId = await roomWith(fixture, 'none', 'restricted', allowed);
      await fixture.join(bob, roomId);
      const content = await contentOf(fixture, roomId, bob);
      assert.equal(content?.['join_authorised_via_users_server'], alice);
    });
  });

  describe('forgetting a room (Memberships.forget)', () => {
    it('is refused for a joined room and an unknown room, hides a room that was left, and is undone by the next join', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { memberships } = fixture.rooms;
      const roomId = await fixture.room(alice, bob);
      await assert.rejects(memberships.forget(bob, roomId), { status: 400, errcode: 'M_UNKNOWN' });
      await assert.rejects(memberships.forget(carol, roomId), { status: 404 });
      await fixture.leave(bob, roomId);
      await memberships.forget(bob, roomId);
      assert.equal((await fixture.engine.userRooms.of(bob)).get(roomId)?.forgotten, true);
      const viewer = { userId: bob, deviceId: undefined };
      await assert.rejects(fixture.rooms.stateReader.all(viewer, roomId), { errcode: 'M_FORBIDDEN' });
      await fixture.join(bob, roomId);
      assert.equal((await fixture.engine.userRooms.of(bob)).get(roomId)?.forgotten, false);
      assert.ok((await fixture.rooms.stateReader.all(viewer, roomId)).length > 0);
    });

    it('forgets the room after a leave, kick or ban (forget_rooms_on_leave)', async () => {
      const fixture = await RoomsUnderTest.open(open, [], { options: { forget_rooms_on_leave: true } });
      const { memberships } = fixture.rooms;
      const departures = [
        (roomId: string) => memberships.leave(bob, roomId),
        (roomId: string) => memberships.kick(alice, roomId, bob),
        (roomId: string) => memberships.ban(alice, roomId, bob),
        (roomId: string) => setMembershipState(fixture, bob, roomId, bob, 'leave'),
        (roomId: string) => setMembershipState(fixture, alice, roomId, bob, 'ban'),
        async (roomId: string) => {
          await memberships.ban(alice, roomId, bob);
          await memberships.unban(alice, roomId, bob);
        },
      ];
      for (const depart of departures) {
        const roomId = await fixture.room(alice, bob);
        await depart(roomId);
        assert.equal((await fixture.engine.userRooms.of(bob)).get(roomId)?.forgotten, true);
      }
    });
  });

  it('answers a repeated join or leave only when the event is on disk', async () => {
    const fixture = await RoomsUnderTest.open(open);
    const roomId = await fixture.room(alice, bob);
    const { memberships } = fixture.rooms;
    const head = await fixture.engine.heads.get(roomId);
    const isEventOnDisk = async (eventId: string) => {
      const reader = fixture.database.reader<{ events: { event_id: string } }>();
      const rows = await reader
        .selectFrom('events')
        .select('event_id')
        .where('event_id', '=', eventId)
        .execute();
      return rows.length === 1;
    };
    for (const [action, before] of [
      ['leave', 'join'],
      ['join', 'leave'],
    ] as const) {
      const first = memberships[action](bob, roomId);
      while (head?.membership(bob) === before) await new Promise(setImmediate);
      const { event } = await memberships[action](bob, roomId);
      assert.ok(await isEventOnDisk(event.eventId), action);
      assert.equal((await first).event.eventId, event.eventId);
    }
  });

  it('keeps the stream position of a join when only the profile changes, also after a restart', async () => {
    let fixture = await RoomsUnderTest.open(open);
    const roomId = await fixture.room(alice, bob);
    const joinPosition = async () => (await fixture.engine.userRooms.of(bob)).get(roomId)?.stream;
    const joined = await joinPosition();
    const change = { type: 'm.room.member', stateKey: bob };
    const setName = (displayname: string) =>
      fixture.rooms.sending.state({ userId: bob, deviceId: undefined }, roomId, change, {
        membership: 'join',
        displayname,
      });
    await setName('one');
    assert.equal(await joinPosition(), joined);
    fixture = await fixture.restart(open);
    assert.equal(await joinPosition(), joined);
    const head = await fixture.engine.heads.get(roomId);
    const leaving = fixture.leave(bob, roomId);
    while (head?.membership(bob) === 'join') await new Promise(setImmediate);
    await Promise.all([leaving, fixture.join(bob, roomId)]);
    await setName('two');
    const rejoined = await joinPosition();
    assert.ok(rejoined !== undefined && joined !== undefined && rejoined > joined);
    fixture = await fixture.restart(open);
    assert.equal(await joinPosition(), rejoined);
    assert.equal((await fixture.engine.userRooms.of(bob)).get(roomId)?.membership, 'join');
  });
});
