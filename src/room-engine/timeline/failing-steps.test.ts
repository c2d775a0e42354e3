import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { isThorough } from '../../../test/support/inputs/thoroughness.ts';
import { ann, ben, ReferenceRoom } from '../../../test/support/rooms/reference-room.ts';
import { alice, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { openUnreliableRooms } from '../../../test/support/rooms/unreliable-rooms.ts';
import { BackgroundSigner } from '../../kernel/signing/index.ts';
import { LocalStreams, type Reserve, Sequence } from '../../kernel/streams/index.ts';
import { PreparedCurrentState } from '../placement/states/prepared-current-state.ts';
import { StateResolver } from '../placement/states/state-resolver.ts';
import { AuthEdges } from '../state/auth-edges.ts';
import { GroupChain } from '../state/group-chain.ts';
import { StateGroups } from '../state/state-groups.ts';
import { EventStore } from './event-store.ts';
import { EventWriter } from './event-writer.ts';
import { InMemoryHead } from './in-memory-head.ts';
import { WritableHead } from './writable-head.ts';
import { WritableHeads } from './writable-heads.ts';
import { WriteBatch } from './write-batch.ts';

/**
 * The methods, by prototype, that run between the reservation of a position and the end of the commit and could throw.
 */
const steps: readonly (readonly [prototype: object, methods: readonly string[]])[] = [
  [Sequence.prototype, ['next']],
  [GroupChain.prototype, ['advance']],
  [PreparedCurrentState.prototype, ['apply']],
  [WritableHead.prototype, ['append', 'setEntry', 'setExtremities', 'redact']],
  [InMemoryHead.prototype, ['remember', 'revise']],
  [WritableHeads.prototype, ['register']],
  [StateResolver.prototype, ['remember']],
  [EventWriter.prototype, ['stage']],
  [EventStore.prototype, ['add', 'beginRevision']],
  [StateGroups.prototype, ['add']],
  [AuthEdges.prototype, ['add']],
  [BackgroundSigner.prototype, ['sign', 'poll']],
  [WriteBatch.prototype, ['add', 'statements']],
];

const staging = 'EventWriter.stage';

/** Which call of a step fails. */
interface FailingCall {
  /** The class and the method, or `batch` of the database. */
  readonly step: string;
  /** Which call of the step fails, counted from 1 after the first reservation of a position. */
  readonly number: number;
  /** Whether the call fails before it does its work, or after that. */
  readonly when: 'before' | 'after';
}

/** Makes a single call of a step fail, counts the calls of all steps, and records the highest reserved position. */
class Fault {
  hasFailed = false;
  reserved = 0;
  /** Number of calls of each step after the first reservation. */
  readonly calls = new Map<string, number>();
  /** Whether a position was reserved; calls before that are not counted. */
  #isArmed = false;
  readonly #failing: FailingCall | undefined;
  readonly #restore: (() => void)[] = [];

  /** @param failing undefined: no call fails */
  constructor(fixture: RoomsUnderTest, failing?: FailingCall) {
    this.#failing = failing;
    for (const [target, names] of steps)
      for (const name of names) this.#wrap(target, name, `${target.constructor.name}.${name}`);
    this.#wrap(fixture.database, 'batch', 'batch');
    this.#watchReservations();
  }

  end(): void {
    for (const restore of this.#restore) restore();
  }

  #wrap(target: object, name: string, step: string): void {
    const methods = target as Record<string, (...args: unknown[]) => unknown>;
    const original = methods[name];
    assert.ok(original, name);
    const fault = this;
    methods[name] = function (this: unknown, ...args: unknown[]) {
      const fails = fault.#fails(step);
      if (fails && fault.#failing?.when === 'before') throw new Error(`${step} fails`);
      const result = original.apply(this, args);
      if (!fails) return result;
      if (!(result instanceof Promise) || name === 'stage') throw new Error(`${step} fails`);
      return result.then(() => {
        throw new Error(`${step} fails`);
      });
    };
    this.#restore.push(() => {
      methods[name] = original;
    });
  }

  #fails(step: string): boolean {
    if (!this.#isArmed) return false;
    const number = 1 + (this.calls.get(step) ?? 0);
    this.calls.set(step, number);
    if (this.#failing?.step !== step || this.#failing.number !== number) return false;
    this.hasFailed = true;
    return true;
  }

  #watchReservations(): void {
    const { reserving } = LocalStreams.prototype;
    const fault = this;
    LocalStreams.prototype.reserving = function <T>(this: LocalStreams, work: (reserve: Reserve) => T): T {
      return reserving.call<LocalStreams, [(reserve: Reserve) => T], T>(this, (reserve) =>
        work((stream) => {
          const reservation = reserve(stream);
          fault.#isArmed = true;
          fault.reserved = Math.max(fault.reserved, reservation.position);
          return reservation;
        }),
      );
    };
    this.#restore.push(() => {
      LocalStreams.prototype.reserving = reserving;
    });
  }
}

/** An operation in a room, which may be repeated after it has failed. */
interface Operation {
  readonly roomId: string | undefined;
  run(): Promise<unknown>;
}

type Prepare = (fixture: RoomsUnderTest) => Promise<Operation>;

const enterRoom = async ({ engine }: RoomsUnderTest, room: ReferenceRoom) => {
  await engine.placement.enter(room.room, room.join(alice));
};

/** Returns an operation that places events of a remote server. */
const placeEvents =
  (addEvents: (room: ReferenceRoom) => readonly string[], version = '10'): Prepare =>
  async (fixture) => {
    const room = new ReferenceRoom(version);
    await enterRoom(fixture, room);
    const eventIds = addEvents(room);
    const { placement } = fixture.engine;
    return {
      roomId: room.roomId,
      run: async () => {
        for (const eventId of eventIds) await placement.place(room.roomId, room.get(eventId));
      },
    };
  };

const operations: Readonly<Record<string, Prepare>> = {
  'sending a message': async (fixture) => {
    const roomId = await fixture.room(alice);
    return { roomId, run: () => fixture.say(alice, roomId, 'hello') };
  },
  'sending a state event': async (fixture) => {
    const roomId = await fixture.room(alice);
    const topic = { type: 'm.room.topic', sender: alice, stateKey: '', content: { topic: 'news' } };
    return { roomId, run: () => fixture.engine.timeline.append(roomId, topic) };
  },
  'redacting a message': async (fixture) => {
    const roomId = await fixture.room(alice);
    const eventId = await fixture.say(alice, roomId, 'hello');
    return { roomId, run: () => fixture.redact(alice, roomId, eventId) };
  },
  'creating a room': async (fixture) => ({ roomId: undefined, run: () => fixture.room(alice) }),
  'placing a message of another server': placeEvents((room) => [room.say(ann)]),
  'placing state of another server': placeEvents((room) => [room.member(ben, 'leave')]),
  'placing state on two sides of a fork': placeEvents((room) => {
    const prev = room.forwardExtremities;
    const [left, right] = [
      room.member('@x:s.example', 'join', { prev }),
      room.member('@y:s.example', 'join', { prev }),
    ];
    return [left, right, room.member(ben, 'leave')];
  }),
  'entering a room': async (fixture) => {
    const room = new ReferenceRoom();
    const join = room.join(alice);
    return { roomId: room.roomId, run: () => fixture.engine.placement.enter(room.room, join) };
  },
  'backfilling events': async (fixture) => {
    const room = new ReferenceRoom();
    const olderEvents = [room.say(ann), room.member('@x:s.example', 'join')];
    await enterRoom(fixture, room);
    const { state, authChain } = room.stateAndAuthChain(room.stateBefore(olderEvents[0]!));
    await fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]);
    const stateBefore = state.map(({ event }) => event.eventId);
    const older = olderEvents.map((eventId, index) => ({
      event: room.get(eventId),
      ...(index === 0 && { stateBefore }),
    }));
    return { roomId: room.roomId, run: () => fixture.engine.placement.backfill(room.roomId, older) };
  },
  'storing outliers of a new room': async (fixture) => {
    const room = new ReferenceRoom();
    const { state, authChain } = room.stateAndAuthChain(room.stateAfter(room.forwardExtremities));
    return {
      roomId: undefined,
      run: () => fixture.engine.placement.addOutliers(room.room, [...authChain, ...state]),
    };
  },
  'storing an out-of-band invite': async (fixture) => {
    const room = new ReferenceRoom();
    const invite = room.get(room.member(alice, 'invite', { sender: ann }));
    return {
      roomId: undefined,
      run: () => fixture.engine.placement.addOutOfBand(room.room, invite, { state: [] }),
    };
  },
  'completing the state of a room': async (fixture) => {
    const room = new ReferenceRoom();
    room.member('@x:s.example', 'join');
    const { event, state, authChain } = room.join(alice);
    const partial = { servers: ['a.example'], from: 'a.example' };
    const essential = state.filter(
      (verified) => verified.event.type !== 'm.room.member' || verified.event.stateKey === ann,
    );
    await fixture.engine.placement.enter(room.room, { event, state: essential, authChain, partial });
    await fixture.engine.placement.addOutliers(room.room, state);
    await fixture.say(alice, room.roomId, 'meanwhile');
    const stateBefore = state.map((verified) => verified.event.eventId);
    return {
      roomId: room.roomId,
      run: () => fixture.engine.placement.completeState(room.roomId, { stateBefore }),
    };
  },
};

/** Returns the fields of a room's head that are compared. */
async function headOf({ engine }: RoomsUnderTest, roomId: string) {
  const head = await engine.heads.get(roomId);
  assert.ok(head);
  const state = [...head.state].map(([key, { eventId }]) => [key, eventId]).sort();
  const extremities = head.extremities.map(({ eventId }) => eventId).sort();
  return {
    state,
    extremities,
    group: head.chain.id,
    members: [...head.members].sort(),
    isPartial: head.isPartial,
  };
}

/** Compares the head in memory with the head that is loaded from the disk. */
async function assertHeadAsOnDisk(fixture: RoomsUnderTest, roomId: string): Promise<void> {
  const inMemory = await headOf(fixture, roomId);
  const head = await fixture.engine.heads.get(roomId);
  fixture.engine.heads.abandon(head!);
  assert.deepEqual(inMemory, await headOf(fixture, roomId));
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('a write that fails between the reservation of a position and the commit', () => {
    for (const [name, prepare] of Object.entries(operations)) {
      for (const when of ['before', 'after'] as const) {
        it(`leaves no position pending, and the head in memory equal to the head on disk: ${name}, a step fails ${when} its work`, async () => {
          const fixture = await RoomsUnderTest.open(open);
          const attempt = async (failing?: FailingCall) => {
            const operation = await prepare(fixture);
            await fixture.engine.settled();
            const fault = new Fault(fixture, failing);
            const [outcome] = await Promise.allSettled([operation.run()]);
            await fixture.engine.settled();
            fault.end();
            assert.equal(fixture.streams.current, fault.reserved, JSON.stringify(failing));
            return { operation, fault, outcome };
          };
          const { fault, outcome } = await attempt();
          assert.equal(outcome?.status, 'fulfilled');
          const failed = new Set<string>();
          for (const [step, calls] of fault.calls) {
            // The calls between the first and the last do the same for other events of a batch, and are left out.
            const numbers = isThorough ? Array.from({ length: calls }, (_, index) => index + 1) : [1, calls];
            for (const number of new Set(numbers)) {
              const { operation, fault, outcome } = await attempt({ step, number, when });
              // The number of calls of some steps differs from run to run.
              if (!fault.hasFailed) {
                assert.equal(outcome?.status, 'fulfilled');
                continue;
              }
              failed.add(step);
              const { roomId } = operation;
              if (roomId !== undefined && (await fixture.engine.heads.get(roomId)))
                await assertHeadAsOnDisk(fixture, roomId);
              await operation.run();
              await fixture.engine.settled();
              if (roomId !== undefined) {
                const position = await fixture.positionOf(await fixture.say(alice, roomId, 'after it'));
                assert.equal(fixture.streams.current, position);
                await assertHeadAsOnDisk(fixture, roomId);
              }
            }
          }

          for (const step of [staging, 'batch']) assert.ok(failed.has(step), step);
        });
      }
    }

    it('causes the head of the room to be loaded again, but only after the writes of earlier events of the room have ended', async () => {
      const [writeBegun, writeReleased] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const { fixture, database } = await openUnreliableRooms(open);
      const roomId = await fixture.room(alice);
      database.delay = () => {
        writeBegun.resolve();
        return writeReleased.promise;
      };
      const first = fixture.say(alice, roomId, 'on its way');
      await writeBegun.promise;
      database.delay = () => undefined;
      const fault = new Fault(fixture, { step: staging, number: 1, when: 'before' });
      await assert.rejects(fixture.say(alice, roomId, 'fails'), /fails/);
      fault.end();
      const next = fixture.say(alice, roomId, 'comes after it');
      writeReleased.resolve();
      const { event } = (await fixture.engine.events.getById(await next))!;
      assert.deepEqual(event.prevEventIds, [await first]);
      await assertHeadAsOnDisk(fixture, roomId);
    });
  });
});
