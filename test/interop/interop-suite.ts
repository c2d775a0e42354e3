import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { after, before, test } from '../clients/bounded-test.ts';
import { eventually, within } from '../clients/eventually.ts';
import { failureReport, logLengths } from './failure-report.ts';
import { type Homeserver, InteropNetwork } from './interop-network.ts';
import { InteropUser } from './interop-user.ts';
import { assertSameState } from './same-state.ts';
import { type Servers, sharedServers } from './shared-network.ts';

/** The first two users of one server. */
export interface Side {
  readonly first: InteropUser;
  readonly second: InteropUser;
}

/**
 * The users in a scenario. The hosts are on the server of the room, the guests on the other server; none of them has a
 * guest account. `host` and `guest` are the first users.
 */
export interface Roles {
  readonly host: InteropUser;
  readonly guest: InteropUser;
  readonly hosts: Side;
  readonly guests: Side;
}

export interface ScenarioOptions {
  /** Descriptions of the two directions, appended to the title. */
  readonly ways?: readonly [string, string];
  /** Set when the users share no room at the end, so that there is no state to compare. */
  readonly endsWithoutSharedRoom?: boolean;
}

const byRoomServer = ['in a room on Hearth', 'in a room on the reference server'] as const;
/** The directions of scenarios without a room. */
export const byDirection = ['from Hearth', 'to Hearth'] as const;

/** Milliseconds for a scenario, without the comparison of rooms. */
const scenarioTimeout = 240_000;

/** Scenarios between users of Hearth and users of the reference server. */
export class InteropSuite<Server extends Homeserver = Homeserver> {
  readonly #topic: string;
  readonly #users: { readonly onHearth: InteropUser[]; readonly onReference: InteropUser[] } = {
    onHearth: [],
    onReference: [],
  };
  readonly #comparedRooms = new Set<string>();
  #servers: Servers<Server> | undefined;

  private constructor(topic: string) {
    this.#topic = topic;
  }

  /**
   * Runs scenarios on servers that all suites share.
   * @param topic one word that names the suite and is the prefix of its users' names
   */
  static onSharedServers(topic: string, define: (suite: InteropSuite) => void): void {
    InteropSuite.#describe(topic, sharedServers, define);
  }

  /** Runs scenarios on servers of their own. The scenarios may stop, kill and start these servers. */
  static onOwnServers(
    topic: string,
    define: (suite: InteropSuite<InteropNetwork['hearth' | 'reference']>) => void,
  ): void {
    const open = async () => {
      const network = await InteropNetwork.start();
      return { servers: network, release: () => network.stop() };
    };
    InteropSuite.#describe(topic, open, define);
  }

  static #describe<Server extends Homeserver>(
    topic: string,
    open: () => Promise<{ servers: Servers<Server>; release(): Promise<void> }>,
    define: (suite: InteropSuite<Server>) => void,
  ): void {
    describe(`interoperability with the reference server: ${topic}`, () => {
      const suite = new InteropSuite<Server>(topic);
      let release: (() => Promise<void>) | undefined;
      before(async () => {
        const opened = await open();
        release = opened.release;
        suite.#servers = opened.servers;
        for (const name of ['anna', 'ben']) await suite.registerPair(name);
      });
      after(() => release?.());
      define(suite);
    });
  }

  get servers(): Servers<Server> {
    assert.ok(this.#servers, 'the servers have not been started');
    return this.#servers;
  }

  /** Users of Hearth. */
  get onHearth(): Side {
    return firstTwo(this.#users.onHearth);
  }

  /** Users of the reference server. */
  get onReference(): Side {
    return firstTwo(this.#users.onReference);
  }

  /** Registers one more user on each server. */
  async registerPair(name: string): Promise<{ onHearth: InteropUser; onReference: InteropUser }> {
    const [hearthUser, referenceUser] = await Promise.all([
      InteropUser.register(this.servers.hearth, `${this.#topic}-${name}`),
      InteropUser.register(this.servers.reference, `${this.#topic}-${name}`),
    ]);
    this.addUsers(hearthUser, referenceUser);
    return { onHearth: hearthUser, onReference: referenceUser };
  }

  /** Adds two registered users, so that their rooms are compared too. */
  addUsers(hearthUser: InteropUser, referenceUser: InteropUser): void {
    this.#users.onHearth.push(hearthUser);
    this.#users.onReference.push(referenceUser);
  }

  /**
   * Defines a test. After the test, both servers must hold the same state of each room that the test created and that
   * both servers are in.
   */
  readonly scenario = (
    title: string,
    run: () => Promise<void>,
    { endsWithoutSharedRoom = false }: ScenarioOptions = {},
  ): void => {
    test(title, async () => {
      const { hearth, reference } = this.servers;
      const since = logLengths([hearth, reference]);
      try {
        await within('the end of the scenario', run(), scenarioTimeout);
        if (endsWithoutSharedRoom) return;
        await this.#compareRooms();
      } catch (cause) {
        const users = [...this.#users.onHearth, ...this.#users.onReference];
        throw new Error(`${(cause as Error).message}\n${failureReport(users, since)}`, { cause });
      }
    });
  };

  /** Defines a scenario in both directions: once the room is on Hearth, once on the reference server. */
  readonly bothWays = (
    title: string,
    run: (roles: Roles) => Promise<void>,
    options: ScenarioOptions = {},
  ): void => {
    const { ways = byRoomServer } = options;
    const roles = (hosts: Side, guests: Side) => ({ host: hosts.first, guest: guests.first, hosts, guests });
    this.scenario(`${title}, ${ways[0]}`, () => run(roles(this.onHearth, this.onReference)), options);
    this.scenario(`${title}, ${ways[1]}`, () => run(roles(this.onReference, this.onHearth)), options);
  };

  /**
   * Compares the state of the rooms that both servers are in and that were not compared before; there must be
   * at least one. The list of rooms is requested from Hearth only once, because an acknowledged join must be visible at
   * once; the reference server may take some time.
   */
  async #compareRooms(): Promise<void> {
    const { onHearth: hearthUsers, onReference: referenceUsers } = this.#users;
    let [hearthRooms, referenceRooms] = await Promise.all([roomsOf(hearthUsers), roomsOf(referenceUsers)]);
    const sharedRooms = () =>
      [...hearthRooms.members].flatMap(([room, hearthUser]) => {
        const referenceUser = this.#comparedRooms.has(room) ? undefined : referenceRooms.members.get(room);
        return referenceUser ? [{ room, hearthUser, referenceUser }] : [];
      });
    await eventually('rooms on the reference server', async () => {
      if (sharedRooms().length > 0) return true;
      referenceRooms = await roomsOf(referenceUsers);
      return false;
    }).catch(async (cause: unknown) => {
      const firstHearthRooms = hearthRooms;
      hearthRooms = await roomsOf(hearthUsers);
      const lines = [
        'no room is shared with the reference server; users of Hearth are in:',
        ...firstHearthRooms.lists,
        'users of Hearth some time later:',
        ...hearthRooms.lists,
        'users of the reference server:',
        ...referenceRooms.lists,
        `compared before: ${[...this.#comparedRooms].join(' ')}`,
      ];
      throw new Error(lines.join('\n'), { cause });
    });
    for (const { room, hearthUser, referenceUser } of sharedRooms()) {
      await assertSameState(room, hearthUser, referenceUser);
      this.#comparedRooms.add(room);
    }
  }
}

function firstTwo([first, second]: readonly InteropUser[]): Side {
  assert.ok(first && second, 'the users are not registered');
  return { first, second };
}

interface Rooms {
  /** The rooms that at least one of the users is in, each with one of these users. */
  readonly members: ReadonlyMap<string, InteropUser>;
  /** The response to each user's `GET /joined_rooms`, for error messages. */
  readonly lists: readonly string[];
}

async function roomsOf(users: readonly InteropUser[]): Promise<Rooms> {
  const members = new Map<string, InteropUser>();
  const lists: string[] = [];
  for (const user of users) {
    const { status, body } = await user.call('GET', '/joined_rooms');
    lists.push(`  ${user.id}: ${status} ${JSON.stringify(body)}`);
    // Users who have logged out cannot list their rooms.
    if (status === 401) continue;
    assert.equal(status, 200);
    for (const room of body['joined_rooms'] as string[]) members.set(room, user);
  }
  return { members, lists };
}
