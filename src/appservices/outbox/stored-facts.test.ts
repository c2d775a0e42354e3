import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ann, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { Fact } from './fact.ts';
import { storedFacts } from './stored-facts.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('storedFacts', () => {
    it('returns invites to rooms that this server is not in, at their positions', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { engine, streams } = fixture;
      const room = new ReferenceRoom();
      const invite = room.get(room.member(alice, 'invite', { sender: ann }));
      const stored = await engine.placement.addOutOfBand(room.room, invite, { state: [] });
      const emptySources = {
        devices: { changedSince: async () => new Set<string>() },
        queues: { addressesBetween: async () => [] },
        users: { servicesOf: () => [] },
      };
      const facts = async (after: number) => {
        const pages: Fact[] = [];
        const deps = { engine, ...emptySources } as unknown as Parameters<typeof storedFacts>[0];
        for await (const page of storedFacts(deps, after, streams.current)) pages.push(...page);
        return pages.map((fact) => [fact.kind, fact.position, fact.kind === 'event' && fact.stored.nid]);
      };
      assert.deepEqual(await facts(0), [['event', stored.nid, stored.nid]]);
      assert.deepEqual(await facts(stored.nid), []);
    });
  });
});
