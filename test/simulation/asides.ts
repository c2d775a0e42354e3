import { sql } from 'kysely';
import type { PresenceState } from '../../src/presence/index.ts';
import { serverOfUser } from '../../src/protocol/index.ts';
import { attempt } from './attempt.ts';
import { KeyWatch } from './key-watch.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import { Whispers } from './whispers.ts';
import type { World } from './world.ts';

export type AsideName = 'type' | 'read' | 'readPrivately' | 'appear' | 'whisper' | 'device' | 'lookAtKeys';

const habits: Readonly<Record<AsideName, number>> = {
  type: 4,
  read: 5,
  readPrivately: 3,
  appear: 3,
  whisper: 10,
  device: 6,
  lookAtKeys: 4,
};

/** Milliseconds until everybody must have heard of what goes on now, and until it is forgotten. */
const [soon, later] = [10_000, 300_000];

/** How a person is seen by the others at the end. */
const lastStatus = 'good night';

type Sees = (one: SimulatedServer, other: SimulatedServer) => boolean;

/** What people do besides saying things: they type, read, come and go, whisper, and get new devices. */
export class Asides {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #roomId: () => string;
  readonly #whispers: Whispers;
  readonly #keys: KeyWatch;
  /** User and event, of everything that was read and not in private. */
  readonly #read = new Set<string>();

  constructor(world: World, roomId: () => string) {
    this.#world = world;
    this.#dice = world.dice.fork('asides');
    this.#roomId = roomId;
    this.#whispers = new Whispers(world, this.#dice);
    this.#keys = new KeyWatch(world, this.#dice);
  }

  begin(): Promise<void> {
    return this.#keys.begin();
  }

  /** Lets people do such things until the plan's time is over. */
  async live(): Promise<void> {
    const { plan, scheduler, servers } = this.#world;
    const actions: Promise<unknown>[] = [];
    for (let index = 0; index < plan.asides; index++) {
      const at = this.#dice.next() * plan.duration;
      const server = this.#dice.pick(servers);
      const userId = this.#dice.pick(server.users);
      const name = this.#dice.weighted(habits);
      actions.push(scheduler.sleep(at).then(() => this.#act(server, userId, name)));
    }
    await Promise.all(actions);
  }

  /** Clients do again what they do not know to be done. */
  repeat(): Promise<void> {
    return this.#whispers.repeat();
  }

  /** What must have arrived, whatever has happened. */
  async check(sees: Sees): Promise<void> {
    await this.#whispers.check();
    await this.#keys.check(this.#roomId(), sees);
    for (const server of this.#world.servers) await this.#checkReceipts(server);
    for (const leak of this.#world.network.leaks) this.#world.fail(leak);
  }

  /** Everybody in the room types, has read everything and is there: all the others hear of it, and that it is over. */
  async pulse(sees: Sees): Promise<void> {
    const { servers, scheduler } = this.#world;
    const read = new Map<string, string>();
    // Who types already is not told of again.
    await scheduler.sleep(later);
    for (const server of servers) {
      for (const userId of await this.#inRoom(server)) {
        const eventId = await this.#act(server, userId, 'read');
        if (eventId !== undefined) read.set(userId, eventId);
        await this.#act(server, userId, 'type', 60_000);
        server.run!.besides.presence.set({ userId, deviceId: 'HOME' }, 'online', lastStatus);
      }
    }
    await scheduler.sleep(soon);
    for (const server of servers) {
      for (const other of servers) {
        if (other === server || !sees(server, other) || !sees(other, server)) continue;
        for (const userId of await this.#inRoom(server))
          await this.#checkHeard(userId, other, read.get(userId));
      }
    }
    await scheduler.sleep(later);
    for (const { name, run } of servers) {
      const typing = run?.besides.typing.inRoom(this.#roomId()) ?? [];
      if (typing.length > 0) this.#world.fail(`${typing.join(', ')} type for ever at ${name}`);
    }
  }

  async #act(
    server: SimulatedServer,
    userId: string,
    name: AsideName,
    forLong?: number,
  ): Promise<string | undefined> {
    const roomId = this.#roomId();
    const other = this.#dice.pick(this.#world.servers.flatMap(({ users }) => users));
    const [number, isOver] = [this.#dice.next(), this.#dice.chance(0.3)];
    switch (name) {
      case 'whisper':
        await this.#whispers.send(server, userId, other);
        return undefined;
      case 'device':
        await this.#keys.change(server, userId);
        return undefined;
      case 'lookAtKeys':
        await this.#keys.look(server, roomId);
        return undefined;
      case 'appear': {
        const states: readonly PresenceState[] = ['online', 'unavailable', 'offline'];
        const state = states[Math.floor(number * 3)]!;
        await this.#note(server, `${userId} is ${state}`, async ({ besides }) =>
          besides.presence.set({ userId, deviceId: 'HOME' }, state, `since ${this.#world.scheduler.elapsed}`),
        );
        return undefined;
      }
      case 'type': {
        if (!(await this.#inRoom(server)).includes(userId)) return undefined;
        await this.#note(server, `${userId} types`, async ({ besides }) =>
          besides.typing.set(userId, roomId, forLong !== undefined || !isOver, forLong ?? number * 60_000),
        );
        return undefined;
      }
      case 'read':
      case 'readPrivately': {
        if (!(await this.#inRoom(server)).includes(userId)) return undefined;
        const head = await server.run!.rooms.engine.heads.get(roomId);
        const { eventId } = head!.recent.at(forLong === undefined && isOver ? -2 : -1)?.event ?? {};
        if (eventId === undefined) return undefined;
        const type = name === 'read' ? 'm.read' : 'm.read.private';
        if (name === 'read') this.#read.add(`${userId} ${eventId}`);
        const what = `${userId} has read ${eventId}${name === 'read' ? '' : ' in private'}`;
        await this.#note(server, what, ({ besides }) =>
          besides.receipts.give({ userId, roomId, type, eventId, threadId: undefined }),
        );
        return eventId;
      }
    }
  }

  async #note(server: SimulatedServer, what: string, work: (run: Run) => Promise<void>): Promise<void> {
    const answer = await attempt(this.#world, server, what, work);
    if (typeof answer !== 'string') this.#world.trace.note(server.name, what);
  }

  /** Users of the server who are in the room, as it sees that itself. */
  async #inRoom({ run, users }: SimulatedServer): Promise<readonly string[]> {
    const head = await run?.rooms.engine.heads.get(this.#roomId());
    return run?.isAlive ? users.filter((userId) => head?.membership(userId) === 'join') : [];
  }

  async #checkHeard(userId: string, { name, run }: SimulatedServer, read: string | undefined): Promise<void> {
    const { rooms, besides } = run!;
    const head = await rooms.engine.heads.get(this.#roomId());
    if (head?.membership(userId) !== 'join') return;
    const miss = (what: string) => this.#world.fail(`${name} has not heard that ${userId} ${what}`);
    if (!besides.typing.inRoom(this.#roomId()).includes(userId)) miss('types');
    const status = besides.presence.peek(userId);
    if (status?.presence !== 'online' || status.statusMsg !== lastStatus) miss('is online');
    const stored = read === undefined ? undefined : await rooms.engine.events.getById(read);
    if (stored?.stream === undefined) return;
    const receipt = (await receiptsOf(run!)).find((one) => one.user_id === userId && one.type === 'm.read');
    if ((receipt?.event_stream ?? 0) < stored.stream) miss(`has read ${read}`);
  }

  /** Nobody knows of others what these have not said, or have read in private. */
  async #checkReceipts({ name, run }: SimulatedServer): Promise<void> {
    for (const { user_id: userId, type, event_id: eventId } of run ? await receiptsOf(run) : []) {
      if (serverOfUser(userId) === name) continue;
      if (type !== 'm.read') this.#world.fail(`${name} knows what ${userId} has read in private`);
      if (!this.#read.has(`${userId} ${eventId}`)) {
        this.#world.fail(`${name} says that ${userId} has read ${eventId}, and they have not`);
      }
    }
  }
}

interface ReceiptRow {
  readonly user_id: string;
  readonly type: string;
  readonly event_id: string;
  readonly event_stream: number | null;
}

async function receiptsOf({ kernel }: Run): Promise<readonly ReceiptRow[]> {
  const { rows } = await sql<ReceiptRow>`select user_id, type, event_id, event_stream from receipts`.execute(
    kernel.database.reader<never>(),
  );
  return rows;
}
