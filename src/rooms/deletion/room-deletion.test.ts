import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { JobAttempt, JobHandler } from '../../kernel/jobs/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { RoomDeletion, type RoomDeletionDeps } from './room-deletion.ts';

/** A deletion; each call of `attempt` runs one attempt of its job. */
interface Deletion {
  /** Runs an attempt. It fails like a crash when it stores progress and `isCrash` returns true for this progress. */
  attempt(isCrash?: (progress: JsonObject) => boolean): Promise<void>;
  /** The progress that the last attempt stored, or the result of an attempt that succeeded. */
  readonly progress: JsonObject;
}

/** Creates a `RoomDeletion` whose job the test runs. @param savedPayload the progress of a deletion to continue */
function openDeletion({ rooms, database, clock }: RoomsUnderTest, savedPayload: JsonObject = {}) {
  let handler: JobHandler<JsonObject> | undefined;
  let payload = savedPayload;
  const jobs = {
    register: (_kind: string, registered: JobHandler<JsonObject>) => {
      handler = registered;
    },
    list: async () => [],
    schedule: async (_writer: unknown, request: { payload: JsonObject }) => {
      payload = request.payload;
    },
  };
  const service = new RoomDeletion({
    rooms,
    database,
    clock,
    jobs,
    randomness: systemRandomness,
    serverName: 'test',
    eventsQueued: async () => undefined,
  } as unknown as RoomDeletionDeps);
  const deletion: Deletion = {
    async attempt(isCrash = () => false) {
      const progress = async (next: JsonObject) => {
        if (isCrash(next)) throw new Error('the process has ended');
        payload = next;
      };
      const { signal } = new AbortController();
      const attempt = { id: 1, key: 'deletion', payload, attempt: 1, signal, progress };
      payload = (await handler?.run(attempt as JobAttempt<JsonObject>)) as JsonObject;
    },
    get progress() {
      return payload;
    },
  };
  return { service, deletion };
}

const joinedRooms = async ({ engine }: RoomsUnderTest, userId: string) =>
  engine.userRooms.withMembership(userId, 'join');

forSelectedDatabases(import.meta.url, (open) => {
  describe('deleting rooms (RoomDeletion)', () => {
    it('creates one new room with one message, and returns the moved aliases, although the process ends twice before it has stored its progress', async () => {
      const beforeCrash = await RoomsUnderTest.open(open);
      const roomId = await beforeCrash.room(alice, bob);
      await beforeCrash.rooms.aliases.put(alice, '#old:test', roomId);
      const head = await beforeCrash.engine.heads.get(roomId);
      assert.ok(head);
      const { service, deletion } = openDeletion(beforeCrash);
      await service.schedule(head, {
        roomId,
        newRoomUserId: alice,
        newRoomName: 'Moved',
        message: 'This room was closed',
        purge: false,
        blockedBy: null,
        forcePurge: false,
      });
      const crashError = /the process has ended/;
      await assert.rejects(
        deletion.attempt(({ newRoomId }) => newRoomId !== null),
        crashError,
      );
      const afterCrash = await beforeCrash.restart(open);
      const { deletion: secondDeletion } = openDeletion(afterCrash, deletion.progress);
      await assert.rejects(
        secondDeletion.attempt(({ isMoved }) => isMoved === true),
        crashError,
      );
      const afterSecondCrash = await afterCrash.restart(open);
      const { deletion: finalDeletion } = openDeletion(afterSecondCrash, secondDeletion.progress);
      await finalDeletion.attempt();
      const { newRoomId, aliases } = finalDeletion.progress;
      assert.deepEqual(aliases, ['#old:test']);
      for (const userId of [alice, bob])
        assert.deepEqual(await joinedRooms(afterSecondCrash, userId), [newRoomId]);
      const { roomNid } = (await afterSecondCrash.engine.heads.get(String(newRoomId)))!;
      const range = {
        after: 0,
        upTo: afterSecondCrash.streams.current,
        limit: 100,
        direction: 'forward',
      } as const;
      const events = await afterSecondCrash.engine.events.timeline(roomNid, range);
      assert.equal(events.filter(({ event }) => event.type === 'm.room.message').length, 1);
    });
  });
});
