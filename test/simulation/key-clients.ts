import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, serverOfUser } from '../../src/protocol/index.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';
import { attempt } from './attempt.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import { homeDeviceId } from './to-device-traffic.ts';
import type { World } from './world.ts';

/** The keys of one user that a client needs to encrypt for them. */
type Keys = Readonly<Record<string, unknown>>;

/** A client of a server's first user. It queries keys only when /sync says that they have changed. */
interface Client {
  readonly server: SimulatedServer;
  readonly userId: string;
  /** It has read device list changes up to this stream position. */
  since: number;
  /** The keys that the client has, by user id. */
  readonly keys: Map<string, Keys>;
}

/** Milliseconds that a key query waits for remote servers. */
const timeout = 10_000;

/**
 * Users change their devices and cross-signing keys; clients follow device list changes. In the end every
 * client must have the current keys.
 */
export class KeyClients {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #clients: Client[] = [];
  #counter = 0;

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  /** Creates a client for every server, and for every user a device that is never removed. */
  async begin(): Promise<void> {
    for (const server of this.#world.servers) {
      for (const userId of server.users) await this.#newDevice(server.run!, userId, homeDeviceId);
      const since = server.run!.kernel.streams.current;
      this.#clients.push({ server, userId: server.users[0]!, since, keys: new Map() });
    }
  }

  /** One of the user's devices is created, removed or renamed, or the user uploads new cross-signing keys. */
  async change(server: SimulatedServer, userId: string): Promise<void> {
    const what = this.#dice.weighted({ login: 5, logout: 3, rename: 2, identity: 2 });
    const pick = this.#dice.next();
    const answer = await attempt(this.#world, server, `${userId} ${what}`, async (run) => {
      const { devices, e2ee } = run.services;
      if (what === 'login') return this.#newDevice(run, userId, `D${this.#counter++}`);
      if (what === 'identity') {
        const requester = { userId, appservice: 'sim' } as never;
        await e2ee.crossSigning.upload(requester, new ClientIdentity(userId).keys(), '');
        return 'keys';
      }
      const others = (await devices.list(userId)).filter(({ deviceId }) => deviceId !== homeDeviceId);
      const deviceId = others[Math.floor(pick * others.length)]?.deviceId;
      if (deviceId === undefined) return 'nothing';
      if (what === 'logout') await devices.remove(userId, [deviceId]);
      else await devices.rename(userId, deviceId, `named ${this.#counter++}`);
      return deviceId;
    });
    if (typeof answer !== 'string') this.#world.trace.note(server.name, `${userId} ${what}: ${answer.value}`);
  }

  /** The server's client syncs, and queries the keys of joined users that it does not have. */
  async sync(server: SimulatedServer, roomId: string): Promise<void> {
    const client = this.#clients.find((one) => one.server === server)!;
    await attempt(this.#world, server, `${client.userId} queries keys`, (run) =>
      syncClient(client, run, roomId),
    );
  }

  /**
   * Checks that each client has the current keys of every user who shares the room with its user.
   * @param sees whether one server has the other in its room state
   */
  async check(
    roomId: string,
    sees: (one: SimulatedServer, other: SimulatedServer) => boolean,
  ): Promise<void> {
    const { servers } = this.#world;
    for (const client of this.#clients) {
      const { server } = client;
      const head = await server.run?.rooms.engine.heads.get(roomId);
      if (!server.run || head?.membership(client.userId) !== 'join') continue;
      await this.sync(server, roomId);
      for (const other of servers) {
        if (other !== server && !(sees(server, other) && sees(other, server))) continue;
        const there = await other.run!.rooms.engine.heads.get(roomId);
        for (const userId of other.users) {
          const isJoined = head.membership(userId) === 'join' && there?.membership(userId) === 'join';
          if (isJoined) await this.#compare(client, other, userId);
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
      const shortened = (some: Keys | undefined) =>
        JSON.stringify(some)?.replace(/[\w+/]{43,}/g, (key) => key.slice(0, 6));
      const stored = await server.run!.services.e2ee.remoteLists?.read([userId]);
      const list = stored?.lists.get(userId);
      const known =
        list && `${list.stale ? 'a stale' : 'a current'} device list up to ${list.streamIds.join(', ')}`;
      this.#world.fail(
        `${server.name} has ${known ?? 'no device list'}: ` +
          `${viewer} has ${shortened(held)} as the keys of ${userId}, whose keys are ${shortened(real)}`,
      );
    }
  }

  async #newDevice({ services }: Run, userId: string, deviceId: string): Promise<string> {
    await services.devices.create({ userId, deviceId, displayName: undefined });
    const device_keys = new ClientDevice(userId, deviceId).deviceKeys();
    await services.e2ee.upload.upload(userId, deviceId, { device_keys });
    return deviceId;
  }
}

async function syncClient(client: Client, run: Run, roomId: string): Promise<void> {
  const { deviceLists } = run.services.e2ee;
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

/** @returns `undefined` when the user's server cannot be reached */
async function keysOf({ services }: Run, viewer: string, userId: string): Promise<Keys | undefined> {
  const answer = await services.e2ee.query.query(viewer, new Map([[userId, []]]), timeout);
  if (answer.failures[serverOfUser(userId)] !== undefined) return undefined;
  const devices = Object.entries(answer.device_keys[userId] ?? {}).map(([deviceId, device]) => {
    // `unsigned` holds the display name only.
    const { unsigned: _, ...keys } = device as JsonObject;
    return [deviceId, keys];
  });
  return {
    devices: Object.fromEntries(devices),
    master: answer.master_keys[userId],
    selfSigning: answer.self_signing_keys[userId],
  };
}
