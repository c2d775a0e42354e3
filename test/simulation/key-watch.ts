import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, serverOfUser } from '../../src/protocol/index.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';
import { attempt } from './attempt.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import { home } from './whispers.ts';
import type { World } from './world.ts';

/** Of one user: what a client needs to encrypt for them. */
type Keys = Readonly<Record<string, unknown>>;

/** A client of the first user of a server, which asks for keys only when it has to. */
interface Client {
  readonly server: SimulatedServer;
  readonly userId: string;
  /** Up to where it knows whose keys have changed. */
  since: number;
  readonly keys: Map<string, Keys>;
}

/** Milliseconds that a client waits for keys of other servers. */
const timeout = 10_000;

/** Devices that come and go, and clients that have to hear of it: in the end each has the keys that there are. */
export class KeyWatch {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #clients: Client[] = [];
  #made = 0;

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  /** Gives everybody a device that stays. */
  async begin(): Promise<void> {
    for (const server of this.#world.servers) {
      for (const userId of server.users) await this.#newDevice(server.run!, userId, home);
      const since = server.run!.kernel.streams.current;
      this.#clients.push({ server, userId: server.users[0]!, since, keys: new Map() });
    }
  }

  /** One of the user's devices comes, goes or is renamed, or they begin a new identity. */
  async change(server: SimulatedServer, userId: string): Promise<void> {
    const what = this.#dice.weighted({ login: 5, logout: 3, rename: 2, identity: 2 });
    const pick = this.#dice.next();
    const answer = await attempt(this.#world, server, `${userId} ${what}`, async (run) => {
      const { devices, e2ee } = run.besides;
      if (what === 'login') return this.#newDevice(run, userId, `D${this.#made++}`);
      if (what === 'identity') {
        const requester = { userId, appservice: 'sim' } as never;
        await e2ee.crossSigning.upload(requester, new ClientIdentity(userId).keys(), '');
        return 'keys';
      }
      const others = (await devices.list(userId)).filter(({ deviceId }) => deviceId !== home);
      const deviceId = others[Math.floor(pick * others.length)]?.deviceId;
      if (deviceId === undefined) return 'nothing';
      if (what === 'logout') await devices.remove(userId, [deviceId]);
      else await devices.rename(userId, deviceId, `called ${this.#made++}`);
      return deviceId;
    });
    if (typeof answer !== 'string') this.#world.trace.note(server.name, `${userId} ${what}: ${answer.value}`);
  }

  /** The client of a server syncs, and asks for the keys of those in the room whom it does not know. */
  async look(server: SimulatedServer, roomId: string): Promise<void> {
    const client = this.#clients.find((one) => one.server === server)!;
    await attempt(this.#world, server, `${client.userId} looks at keys`, (run) =>
      lookAgain(client, run, roomId),
    );
  }

  /** Whether everybody has the keys of everybody whom they share the room with. @param sees who knows whom to be in it */
  async check(
    roomId: string,
    sees: (one: SimulatedServer, other: SimulatedServer) => boolean,
  ): Promise<void> {
    const { servers } = this.#world;
    for (const client of this.#clients) {
      const { server } = client;
      const head = await server.run?.rooms.engine.heads.get(roomId);
      if (!server.run || head?.membership(client.userId) !== 'join') continue;
      await this.look(server, roomId);
      for (const other of servers) {
        if (other !== server && !(sees(server, other) && sees(other, server))) continue;
        const there = await other.run!.rooms.engine.heads.get(roomId);
        for (const userId of other.users) {
          const isIn = head.membership(userId) === 'join' && there?.membership(userId) === 'join';
          if (isIn) await this.#compare(client, other, userId);
        }
      }
    }
  }

  async #compare(
    { server, userId: viewer, keys }: Client,
    owner: SimulatedServer,
    userId: string,
  ): Promise<void> {
    const held = keys.get(userId);
    const real = await keysOf(owner.run!, owner.users[0]!, userId);
    if (!isDeepStrictEqual(held, real)) {
      const named = (some: Keys | undefined) =>
        JSON.stringify(some)?.replace(/[\w+/]{43,}/g, (key) => key.slice(0, 6));
      const list = (await server.run!.besides.e2ee.remoteLists?.read([userId]))?.get(userId);
      const known = list && `${list.stale ? 'a stale' : 'the'} list up to ${list.streamIds.join(', ')}`;
      this.#world.fail(
        `${server.name} has ${known ?? 'no list'}: ` +
          `${viewer} has ${named(held)} as the keys of ${userId}, who has ${named(real)}`,
      );
    }
  }

  async #newDevice({ besides }: Run, userId: string, deviceId: string): Promise<string> {
    await besides.devices.create({ userId, deviceId, displayName: undefined });
    const device_keys = new ClientDevice(userId, deviceId).deviceKeys();
    await besides.e2ee.upload.upload(userId, deviceId, { device_keys });
    return deviceId;
  }
}

async function lookAgain(client: Client, run: Run, roomId: string): Promise<void> {
  const { deviceLists } = run.besides.e2ee;
  const upTo = run.kernel.streams.current;
  const { changed, left } = await deviceLists.changes(client.userId, client.since, upTo);
  for (const userId of [...changed, ...left]) client.keys.delete(userId);
  client.since = upTo;
  const head = await run.rooms.engine.heads.get(roomId);
  if (head?.membership(client.userId) !== 'join') return;
  for (const [userId, membership] of head.members) {
    if (membership !== 'join' || client.keys.has(userId)) continue;
    const keys = await keysOf(run, client.userId, userId);
    if (keys) client.keys.set(userId, keys);
  }
}

/** @returns `undefined` when the user's server can not be asked */
async function keysOf({ besides }: Run, viewer: string, userId: string): Promise<Keys | undefined> {
  const answer = await besides.e2ee.query.query(viewer, new Map([[userId, []]]), timeout);
  if (answer.failures[serverOfUser(userId)] !== undefined) return undefined;
  const devices = Object.entries(answer.device_keys[userId] ?? {}).map(([deviceId, device]) => {
    // Names are for people.
    const { unsigned: _, ...keys } = device as JsonObject;
    return [deviceId, keys];
  });
  return {
    devices: Object.fromEntries(devices),
    master: answer.master_keys[userId],
    selfSigning: answer.self_signing_keys[userId],
  };
}
