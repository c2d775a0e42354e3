import { sql } from 'kysely';
import type { PresenceState } from '../../src/presence/index.ts';
import { serverOfUser } from '../../src/protocol/index.ts';
import { attempt } from './attempt.ts';
import { KeyClients } from './key-clients.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import { ToDeviceTraffic } from './to-device-traffic.ts';
import type { World } from './world.ts';

export type EduActionName =
  | 'type'
  | 'read'
  | 'readPrivately'
  | 'setPresence'
  | 'sendToDevice'
  | 'changeDevices'
  | 'queryKeys';

const actionWeights: Readonly<Record<EduActionName, number>> = {
  type: 4,
  read: 5,
  readPrivately: 3,
  setPresence: 3,
  sendToDevice: 10,
  changeDevices: 6,
  queryKeys: 4,
};

/** Milliseconds until EDUs must have arrived everywhere. */
const deliveryTime = 10_000;

/** Milliseconds until typing has expired. */
const expiryTime = 300_000;

/** Presence status message that every user has at the end. */
const lastStatus = 'good night';

/** Returns whether the room state of `viewer` contains joined users of `seen`. */
type Sees = (viewer: SimulatedServer, seen: SimulatedServer) => boolean;

/**
 * The actions that federate by EDU: typing, receipts, presence, to-device messages, device list changes and
 * key queries.
 */
export class EduTraffic {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #roomId: () => string;
  readonly #toDevice: ToDeviceTraffic;
  readonly #keys: KeyClients;
  /** The user id and the event id of each public read receipt (`m.read`), joined by a space. */
  readonly #read = new Set<string>();

  constructor(world: World, roomId: () => string) {
    this.#world = world;
    // Changing this label would change the run of every seed.
    this.#dice = world.dice.fork('asides');
    this.#roomId = roomId;
    this.#toDevice = new ToDeviceTraffic(world, this.#dice);
    this.#keys = new KeyClients(world, this.#dice);
  }

  begin(): Promise<void> {
    return this.#keys.begin();
  }

  /** Runs the planned number of random actions until the plan's duration is over. */
  async runActions(): Promise<void> {
    const { plan, scheduler, servers } = this.#world;
    const actions: Promise<unknown>[] = [];
    for (let index = 0; index < plan.eduActions; index++) {
      const delay = this.#dice.next() * plan.duration;
      const server = this.#dice.pick(servers);
      const userId = this.#dice.pick(server.users);
      const name = this.#dice.weighted(actionWeights);
      actions.push(scheduler.sleep(delay).then(() => this.#act(server, userId, name)));
    }
    await Promise.all(actions);
  }

  /** Clients retry the to-device sends that were not acknowledged. */
  repeat(): Promise<void> {
    return this.#toDevice.repeat();
  }

  /** Checks that messages, device keys and receipts have arrived, once the network has healed. */
  async check(sees: Sees): Promise<void> {
    await this.#toDevice.check();
    await this.#keys.check(this.#roomId(), sees);
    for (const server of this.#world.servers) await this.#checkReceipts(server);
    for (const leak of this.#world.network.leaks) this.#world.fail(leak);
  }

  /**
   * Every joined user types, reads the latest event and goes online; checks that the other servers receive these
   * EDUs, and that typing expires.
   */
  async checkLiveDelivery(sees: Sees): Promise<void> {
    const { servers, scheduler } = this.#world;
    const read = new Map<string, string>();
    // Typing that is already on is not sent again: wait until it has expired.
    await scheduler.sleep(expiryTime);
    for (const server of servers) {
      for (const userId of await this.#inRoom(server)) {
        const eventId = await this.#act(server, userId, 'read');
        if (eventId !== undefined) read.set(userId, eventId);
        await this.#act(server, userId, 'type', 60_000);
        server.run!.services.presence.set({ userId, deviceId: 'HOME' }, 'online', lastStatus);
      }
    }
    await scheduler.sleep(deliveryTime);
    for (const server of servers) {
      for (const other of servers) {
        if (other === server || !sees(server, other) || !sees(other, server)) continue;
        for (const userId of await this.#inRoom(server))
          await this.#checkNotified(userId, other, read.get(userId));
      }
    }
    await scheduler.sleep(expiryTime);
    for (const { name, run } of servers) {
      const typing = run?.services.typing.inRoom(this.#roomId()) ?? [];
      if (typing.length > 0) this.#world.fail(`${typing.join(', ')} never stop typing at ${name}`);
    }
  }

  async #act(
    server: SimulatedServer,
    userId: string,
    name: EduActionName,
    typingFor?: number,
  ): Promise<string | undefined> {
    const roomId = this.#roomId();
    const other = this.#dice.pick(this.#world.servers.flatMap(({ users }) => users));
    const number = this.#dice.next();
    // The user stops typing instead of typing, or reads the event before the latest one.
    const useOtherVariant = this.#dice.chance(0.3);
    switch (name) {
      case 'sendToDevice':
        await this.#toDevice.send(server, userId, other);
        return undefined;
      case 'changeDevices':
        await this.#keys.change(server, userId);
        return undefined;
      case 'queryKeys':
        await this.#keys.sync(server, roomId);
        return undefined;
      case 'setPresence': {
        const states: readonly PresenceState[] = ['online', 'unavailable', 'offline'];
        const state = states[Math.floor(number * 3)]!;
        await this.#attempt(server, `${userId} is ${state}`, async ({ services }) =>
          services.presence.set(
            { userId, deviceId: 'HOME' },
            state,
            `since ${this.#world.scheduler.elapsed}`,
          ),
        );
        return undefined;
      }
      case 'type': {
        if (!(await this.#inRoom(server)).includes(userId)) return undefined;
        await this.#attempt(server, `${userId} types`, async ({ services }) =>
          services.typing.set(
            userId,
            roomId,
            typingFor !== undefined || !useOtherVariant,
            typingFor ?? number * 60_000,
          ),
        );
        return undefined;
      }
      case 'read':
      case 'readPrivately': {
        if (!(await this.#inRoom(server)).includes(userId)) return undefined;
        const head = await server.run!.rooms.engine.heads.get(roomId);
        const { eventId } =
          head!.recent.at(typingFor === undefined && useOtherVariant ? -2 : -1)?.event ?? {};
        if (eventId === undefined) return undefined;
        const type = name === 'read' ? 'm.read' : 'm.read.private';
        if (name === 'read') this.#read.add(`${userId} ${eventId}`);
        const what = `${userId} has read ${eventId}${name === 'read' ? '' : ' privately'}`;
        await this.#attempt(server, what, ({ services }) =>
          services.receipts.send({ userId, roomId, type, eventId, threadId: undefined }),
        );
        return eventId;
      }
    }
  }

  async #attempt(server: SimulatedServer, what: string, work: (run: Run) => Promise<void>): Promise<void> {
    const answer = await attempt(this.#world, server, what, work);
    if (typeof answer !== 'string') this.#world.trace.note(server.name, what);
  }

  /** Users of the server that are joined, according to that server. */
  async #inRoom({ run, users }: SimulatedServer): Promise<readonly string[]> {
    const head = await run?.rooms.engine.heads.get(this.#roomId());
    return run?.isAlive ? users.filter((userId) => head?.membership(userId) === 'join') : [];
  }

  async #checkNotified(
    userId: string,
    { name, run }: SimulatedServer,
    read: string | undefined,
  ): Promise<void> {
    const { rooms, services } = run!;
    const head = await rooms.engine.heads.get(this.#roomId());
    if (head?.membership(userId) !== 'join') return;
    const failMissing = (what: string) => this.#world.fail(`${name} was not notified that ${userId} ${what}`);
    if (!services.typing.inRoom(this.#roomId()).includes(userId)) failMissing('types');
    const status = services.presence.peek(userId);
    if (status?.presence !== 'online' || status.statusMsg !== lastStatus) failMissing('is online');
    const stored = read === undefined ? undefined : await rooms.engine.events.getById(read);
    if (stored?.stream === undefined) return;
    const receipt = (await receiptsOf(run!)).find((row) => row.user_id === userId && row.type === 'm.read');
    if ((receipt?.event_stream ?? 0) < stored.stream) failMissing(`has read ${read}`);
  }

  /**
   * Checks that servers have only public receipts of remote users, and only for events that those users have
   * read.
   */
  async #checkReceipts({ name, run }: SimulatedServer): Promise<void> {
    for (const { user_id: userId, type, event_id: eventId } of run ? await receiptsOf(run) : []) {
      if (serverOfUser(userId) === name) continue;
      if (type !== 'm.read') this.#world.fail(`${name} has a private read receipt of ${userId}`);
      if (!this.#read.has(`${userId} ${eventId}`)) {
        this.#world.fail(`${name} has a receipt of ${userId} for ${eventId}, which the user has not read`);
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
