import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases, type OpenDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { ResponseBudget } from '../../kernel/outbound/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { SpaceHierarchy } from './hierarchy.ts';
import { RemoteRooms } from './remote-rooms.ts';
import { RoomSummaries } from './room-summaries.ts';

const far = ['far.example'];

const summary = (roomId: string, more: JsonObject = {}): JsonObject => ({
  room_id: roomId,
  num_joined_members: 3,
  world_readable: false,
  guest_can_join: false,
  ...more,
});

const childEvent = (roomId: string, order: string): JsonObject => ({
  type: 'm.space.child',
  state_key: roomId,
  sender: '@dora:far.example',
  origin_server_ts: 5,
  content: { via: far, order },
});

/**
 * A remote space with a public room, an invite-only one, one for members of `allowed`, and malformed entries.
 */
const farSpace = (allowed: string): JsonObject => ({
  room: summary('!space:far.example', {
    name: 'Far',
    room_type: 'm.space',
    join_rule: 'public',
    children_state: [
      childEvent('!open:far.example', 'a'),
      childEvent('!closed:far.example', 'b'),
      childEvent('!club:far.example', 'c'),
      childEvent('!gone:far.example', 'd'),
      { ...childEvent('!bad:far.example', 'e'), origin_server_ts: 'yesterday' },
      'nonsense',
    ],
  }),
  children: [
    summary('!open:far.example', { name: 'Open', avatar_url: 'javascript:alert(1)', topic: 5 }),
    summary('!closed:far.example', { join_rule: 'invite' }),
    summary('!club:far.example', { join_rule: 'restricted', allowed_room_ids: [allowed, 7] }),
    { room_id: 'no id' },
    null,
  ],
  inaccessible_children: ['!gone:far.example', 5],
});

async function openSpaces(open: OpenDatabase) {
  const fixture = await RoomsUnderTest.open(open);
  const answers = new Map<string, JsonObject>();
  const remoteRequests: string[] = [];
  const budgets: ResponseBudget[] = [];
  const remote = new RemoteRooms(
    {
      hierarchy: async (roomId, via, _suggestedOnly, budget) => {
        budgets.push(budget);
        remoteRequests.push(`${roomId} at ${via.join()}`);
        return answers.get(roomId);
      },
    },
    fixture.clock,
    fixture.caches,
  );
  const parts = { ...fixture.rooms, serverName: 'test', remote };
  const hierarchy = new SpaceHierarchy(parts);
  const names = async (userId: string, roomId: string) => {
    const { rooms } = await hierarchy.page(userId, roomId, { suggestedOnly: false });
    return (rooms as { name?: string; room_id: string }[]).map(({ name, room_id }) => name ?? room_id);
  };
  const make = async (type: string | undefined, more: object = {}) =>
    fixture.rooms.creation.create(alice, {
      name: type ?? 'room',
      preset: 'public_chat',
      ...(type && { creation_content: { type } }),
      ...more,
    });
  const contain = (parent: string, child: string) =>
    fixture.rooms.sending.state(
      { userId: alice, deviceId: undefined },
      parent,
      { type: 'm.space.child', stateKey: child },
      { via: far },
    );
  const summaries = new RoomSummaries(parts);
  return { fixture, answers, remoteRequests, budgets, hierarchy, names, make, contain, summaries };
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('remote rooms in spaces', () => {
    it('includes remote rooms in a space hierarchy if the remote server returns them and their join rules allow it', async () => {
      const { answers, remoteRequests, names, make, contain } = await openSpaces(open);
      const root = await make('m.space');
      const club = await make(undefined);
      await contain(root, '!space:far.example');
      answers.set('!space:far.example', farSpace(club));
      assert.deepEqual(await names(bob, root), ['m.space', 'Far', 'Open']);
      assert.deepEqual(await names(alice, root), ['m.space', 'Far', 'Open', '!club:far.example']);
      assert.deepEqual(
        remoteRequests,
        Array(2).fill('!space:far.example at far.example'),
        'one request for each user',
      );
      answers.clear();
      assert.deepEqual(await names(bob, root), ['m.space']);
    });

    it('requests remote rooms again for each hierarchy and summary, but not for the next page of the same user within a minute', async () => {
      const { fixture, answers, remoteRequests, names, make, contain, hierarchy, summaries } =
        await openSpaces(open);
      const root = await make('m.space');
      await contain(root, '!space:far.example');
      answers.set('!space:far.example', farSpace('!none:test'));
      const page = async (userId: string, from?: string) => {
        const response = await hierarchy.page(userId, root, { suggestedOnly: false, limit: 2, from });
        return {
          ids: (response['rooms'] as JsonObject[]).map(({ room_id: id }) => id),
          next: response['next_batch'] as string | undefined,
        };
      };
      const { next } = await page(bob);
      answers.clear();
      assert.deepEqual((await page(bob, next)).ids, ['!open:far.example']);
      assert.equal(remoteRequests.length, 1);
      assert.deepEqual((await page(alice, next)).ids, []);
      assert.equal(remoteRequests.length, 2);
      fixture.clock.advance(60_001);
      assert.deepEqual((await page(bob, next)).ids, []);
      answers.set('!space:far.example', farSpace('!none:test'));
      assert.deepEqual(await names(bob, root), ['m.space', 'Far', 'Open']);
      const closed = { room: summary('!space:far.example', { name: 'Far', join_rule: 'invite' }) };
      answers.set('!space:far.example', closed);
      assert.deepEqual(await names(bob, root), ['m.space']);
      await assert.rejects(summaries.summary('!space:far.example', bob, far), { errcode: 'M_NOT_FOUND' });
      answers.set('!space:far.example', farSpace('!none:test'));
      assert.equal((await summaries.summary('!space:far.example', bob, far))['name'], 'Far');
    });

    it('does not cache a response whose texts take more bytes than the cache may have', async () => {
      const { answers, remoteRequests, make, contain, hierarchy } = await openSpaces(open);
      const root = await make('m.space');
      await contain(root, '!space:far.example');
      const { room, ...rest } = farSpace('!none:test');
      answers.set('!space:far.example', {
        ...rest,
        room: { ...(room as JsonObject), topic: 'x'.repeat(3_000_000) },
      });
      const page = (from?: string) => hierarchy.page(bob, root, { suggestedOnly: false, limit: 2, from });
      const next = (await page())['next_batch'] as string;
      assert.equal(((await page(next))['rooms'] as JsonObject[]).length, 1);
      assert.equal(remoteRequests.length, 2);
    });

    it('shares one response budget among the requests to other servers for one hierarchy', async () => {
      const { answers, budgets, make, contain, names } = await openSpaces(open);
      const root = await make('m.space');
      for (const roomId of ['!one:far.example', '!two:far.example']) {
        answers.set(roomId, { room: summary(roomId), children: [] });
        await contain(root, roomId);
      }
      await names(bob, root);
      await names(bob, root);
      assert.deepEqual([budgets.length, new Set(budgets).size], [4, 2]);
    });

    it('ignores malformed responses, and responses about a room that was not requested', async () => {
      const { answers, names, make, contain } = await openSpaces(open);
      const root = await make('m.space');
      for (const [index, answer] of [
        {},
        { room: 5 },
        { room: summary('!other:far.example', { name: 'Other' }) },
        {
          room: summary('!bad3:far.example', {
            name: 'Plain',
            children_state: [childEvent('!x:far.example', 'a')],
          }),
        },
      ].entries()) {
        answers.set(`!bad${index}:far.example`, answer as JsonObject);
        await contain(root, `!bad${index}:far.example`);
      }
      assert.deepEqual(await names(bob, root), ['m.space', 'Plain']);
    });

    it('sends at most 20 requests to other servers for one hierarchy, also for spaces that contain each other', async () => {
      const { answers, remoteRequests, names, make, contain } = await openSpaces(open);
      const root = await make('m.space');
      await contain(root, '!0:far.example');
      for (let index = 0; index < 40; index++) {
        const children_state = [
          childEvent(`!${index + 1}:far.example`, 'a'),
          childEvent('!0:far.example', 'b'),
        ];
        const room = summary(`!${index}:far.example`, { room_type: 'm.space', children_state });
        answers.set(`!${index}:far.example`, { room, children: [], inaccessible_children: [] });
      }
      assert.equal((await names(bob, root)).length, 21);
      assert.equal(remoteRequests.length, 20);
    });

    it('returns summaries of remote rooms, with a room version only if the remote server states it, and M_NOT_FOUND for unknown rooms', async () => {
      const { answers, summaries } = await openSpaces(open);
      answers.set('!space:far.example', farSpace('!none:test'));
      const { name, membership, avatar_url } = await summaries.summary('!space:far.example', bob, far);
      assert.deepEqual([name, membership, avatar_url], ['Far', 'leave', undefined]);
      const versionOf = async () => (await summaries.summary('!open:far.example', bob, far))['room_version'];
      answers.set('!open:far.example', { room: summary('!open:far.example') });
      assert.equal(await versionOf(), undefined);
      answers.set('!open:far.example', { room: summary('!open:far.example', { room_version: '12' }) });
      assert.equal(await versionOf(), '12');
      await assert.rejects(summaries.summary('!space2:far.example', bob, far), { errcode: 'M_NOT_FOUND' });
      await assert.rejects(summaries.summary('!space2:far.example', bob), { errcode: 'M_NOT_FOUND' });
    });

    it('lists local rooms in a hierarchy for a remote server if users of that server may see them', async () => {
      const { fixture, hierarchy, make, contain } = await openSpaces(open);
      const root = await make('m.space');
      const publicRoom = await make(undefined);
      const closed = await make(undefined, { preset: 'private_chat' });
      const join_rule = {
        join_rule: 'restricted',
        allow: [{ type: 'm.room_membership', room_id: publicRoom }],
      };
      const club = await make(undefined, {
        initial_state: [{ type: 'm.room.join_rules', content: join_rule }],
      });
      for (const child of [publicRoom, closed, club, '!unknown:far.example']) await contain(root, child);
      const children = async () => {
        const body = await hierarchy.forServer('far.example', root, false);
        const ids = (body['children'] as { room_id: string }[]).map(({ room_id }) => room_id);
        return { ids: ids.sort(), inaccessible: [...(body['inaccessible_children'] as string[])].sort() };
      };
      assert.deepEqual(await children(), { ids: [publicRoom], inaccessible: [closed, club].sort() });
      await fixture.join('@dora:far.example', publicRoom);
      assert.deepEqual(await children(), { ids: [publicRoom, club].sort(), inaccessible: [closed] });
      await assert.rejects(hierarchy.forServer('far.example', closed, false), { errcode: 'M_NOT_FOUND' });
      await fixture.rooms.memberships.invite(alice, closed, '@dora:far.example');
      assert.deepEqual((await children()).inaccessible, []);
    });
  });
});
