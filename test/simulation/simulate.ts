import { hash } from 'node:crypto';
import { join } from 'node:path';
import { migrate, openDatabase } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { migrations } from '../../src/slices.ts';
import {
  checkAcknowledged,
  checkEndedMemberships,
  checkServersAgree,
  type JoinedSince,
  pendingWork,
  visibilityBetween,
} from './checks.ts';
import { closeConnections } from './connections.ts';
import { EduTraffic } from './edu-traffic.ts';
import { Scheduler } from './scheduler.ts';
import { useScheduler } from './simulated-platform.ts';
import { Users } from './users.ts';
import { makeWideFork } from './wide-fork.ts';
import { World } from './world.ts';

/** Result of one seed. */
export interface Outcome {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly trace: readonly string[];
  /** Hash of the trace: every run of a seed has the same hash. */
  readonly digest: string;
}

const second = 1_000;
const hour = 3_600 * second;
const day = 24 * hour;

/** Maximum simulated time until servers have settled after the network has healed. */
const settleTimeout = 8 * day;

/** Makes a database with the current schema. Every simulated server copies it. */
export async function makeDatabaseTemplate(folder: string): Promise<string> {
  const path = join(folder, 'template.db');
  const scheduler = new Scheduler();
  useScheduler(scheduler);
  const make = async () => {
    const database = await openDatabase({ kind: 'sqlite', path, flush: 'never' }, { log: silentLogger });
    await migrate(database, migrations, () => scheduler.now);
    await database.close();
  };
  await scheduler.run(make());
  closeConnections();
  return path;
}

/** Runs one seed. @param print whether the trace is printed as it happens */
export async function simulate(seed: number, template: string, print = false): Promise<Outcome> {
  const world = new World(seed, template, print);
  const simulation = new Simulation(world);
  try {
    await world.run(simulation.run());
  } catch (error) {
    world.fail(`The simulation has failed: ${(error as Error).stack}`);
  }
  world.remove();
  const { lines } = world.trace;
  return { seed, failures: world.failures, trace: lines, digest: hash('sha256', lines.join('\n')) };
}

class Simulation {
  readonly #world: World;
  readonly #users: Users;
  readonly #eduTraffic: EduTraffic;

  constructor(world: World) {
    this.#world = world;
    this.#users = new Users(world);
    this.#eduTraffic = new EduTraffic(world, () => this.#users.roomId);
  }

  async run(): Promise<void> {
    const world = this.#world;
    await world.start();
    await this.#eduTraffic.begin();
    await this.#users.makeRoom();
    world.watch(this.#users.roomId);
    world.scheduleFailures();
    await Promise.all([this.#users.runActions(), this.#eduTraffic.runActions(), this.#wideFork()]);
    await world.heal();
    await this.#eduTraffic.repeat();
    await this.#settle();
    await checkServersAgree(world, this.#users.roomId, this.#joinedSince(), false);
    await this.#users.joinAllServers();
    await this.#settle();
    for (let round = 0; round < 2; round++) await this.#mergeForks();
    const views = await checkServersAgree(world, this.#users.roomId, this.#joinedSince());
    const sees = visibilityBetween(views);
    checkEndedMemberships(world, views, this.#users.endedMemberships);
    await this.#eduTraffic.check(sees);
    if (world.failures.length > 0) return;
    await this.#eduTraffic.checkLiveDelivery(sees);
    await world.restart();
    await this.#settle();
    const again = await checkServersAgree(world, this.#users.roomId, this.#joinedSince());
    await checkAcknowledged(world, again, this.#users.acknowledged);
    await this.#eduTraffic.check(sees);
    for (const view of views) {
      const after = again.find(({ server }) => server === view.server);
      const [stateBefore, stateAfter] = [view, after].map((one) =>
        JSON.stringify([...(one?.state ?? [])].sort()),
      );
      if (stateBefore !== stateAfter)
        world.fail(`The room state of ${view.server.name} differs after a restart`);
    }
  }

  async #wideFork(): Promise<void> {
    const { plan, servers } = this.#world;
    if (plan.forkWidth > 0) await makeWideFork(this.#world, servers.at(-1)!, this.#users.roomId);
  }

  /** Lets simulated time pass until no server has pending work. */
  async #settle(): Promise<void> {
    const { scheduler, servers, trace } = this.#world;
    const begun = scheduler.now;
    for (let pause = second; scheduler.now - begun < settleTimeout; pause = Math.min(pause * 1.5, hour)) {
      await scheduler.sleep(pause);
      const left: string[] = [];
      for (const server of servers) {
        const what = await pendingWork(server, this.#users.roomId, servers);
        if (what) left.push(`${server.name}: ${what}`);
      }
      if (left.length === 0) return trace.note('', 'SETTLED');
      if (scheduler.now - begun + pause >= settleTimeout)
        this.#world.fail(`Servers still have pending work: ${left.join('; ')}`);
    }
  }

  /**
   * A user of each server sends a message, one after the other, so that all forward extremities are merged.
   */
  async #mergeForks(): Promise<void> {
    const { servers } = this.#world;
    for (const server of servers) {
      const head = await server.run?.rooms.engine.heads.get(this.#users.roomId);
      const userId = server.users.find((user) => head?.membership(user) === 'join');
      if (userId) await this.#users.act(server, userId, 'message');
      await this.#settle();
    }
  }

  #joinedSince(): JoinedSince {
    return new Map(
      this.#world.servers.flatMap(({ name, joinedSince }) =>
        joinedSince === undefined ? [] : [[name, joinedSince]],
      ),
    );
  }
}
