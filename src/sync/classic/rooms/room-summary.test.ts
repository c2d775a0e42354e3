import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { UnreliableDatabase } from '../../../../test/support/databases/unreliable-database.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { summaryFields } from '../../sliding/rooms/room-fields.ts';
import { stateAt } from './room-state.ts';
import { memberSummaryAt, summaryAt } from './room-summary.ts';

forSelectedDatabases(import.meta.url, (open) => {
  /** Returns member counts and heroes at a position, after checking that both kinds of sync return the same. */
  async function summaryOf({ engine }: RoomsUnderTest, roomId: string, position: number) {
    const head = await engine.heads.get(roomId);
    assert.ok(head);
    const people = await memberSummaryAt(engine, head, alice, position);
    const summary = await summaryAt(engine, head, people, position);
    const changes = await stateAt(engine, head, position);
    const fields = await summaryFields(engine, head, alice, { isInitial: true, changes, upTo: position });
    const heroes = (fields['heroes'] as { user_id: string }[] | undefined)?.map(({ user_id }) => user_id);
    assert.deepEqual(
      [fields['joined_count'], fields['invited_count']],
      [summary['m.joined_member_count'], summary['m.invited_member_count']],
    );
    assert.deepEqual(heroes, summary['m.heroes']);
    return {
      joined: summary['m.joined_member_count'],
      invited: summary['m.invited_member_count'],
      heroes,
    };
  }

  describe('summary of a room in a sync', () => {
    it('counts the members at the position of the answer, and not later changes', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const steps: [position: number, joined: number, invited: number, heroes: string[]][] = [];
      const record = (joined: number, invited: number, heroes: string[]) =>
        steps.push([fixture.streams.current, joined, invited, heroes]);
      record(1, 0, []);
      await fixture.rooms.memberships.invite(alice, roomId, bob);
      record(1, 1, [bob]);
      await fixture.join(bob, roomId);
      record(2, 0, [bob]);
      await fixture.join(carol, roomId);
      record(3, 0, [bob, carol]);
      await fixture.leave(bob, roomId);
      record(2, 0, [carol]);
      await fixture.send(alice, roomId, 'm.room.message', { body: 'last' });
      record(2, 0, [carol]);
      const name = { type: 'm.room.name', stateKey: '', sender: alice, content: { name: 'Late' } };
      await fixture.engine.timeline.append(roomId, name);
      for (const [position, joined, invited, heroes] of steps) {
        assert.deepEqual(await summaryOf(fixture, roomId, position), { joined, invited, heroes });
      }
    });

    it('does not count a member whose join is not on disk yet', async () => {
      let database: UnreliableDatabase | undefined;
      const fixture = await RoomsUnderTest.open(open, [], {
        wrapDatabase: (inner) => {
          database = new UnreliableDatabase(inner);
          return database;
        },
      });
      assert.ok(database);
      const roomId = await fixture.room(alice, bob);
      const summaryBefore = { joined: 2, invited: 0, heroes: [bob] };
      const writing = Promise.withResolvers<void>();
      database.delay = () => writing.promise;
      const joining = fixture.join(carol, roomId);
      const head = await fixture.engine.heads.get(roomId);
      while (head?.membership(carol) !== 'join') await new Promise(setImmediate);
      assert.deepEqual(await summaryOf(fixture, roomId, fixture.streams.current), summaryBefore);
      writing.resolve();
      await joining;
      const summaryAfter = await summaryOf(fixture, roomId, fixture.streams.current);
      assert.deepEqual(summaryAfter, { joined: 3, invited: 0, heroes: [bob, carol] });
    });
  });
});
