import { hash } from 'node:crypto';
import { join } from 'node:path';
import { migrations } from '../../src/composition/kernel.ts';
import { migrate, openDatabase } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { Asides } from './asides.ts';
import { check, checkAcknowledged, checkTurnedDown, type Stays, seesOf, unfinished } from './checks.ts';
import { makeFan } from './fan.ts';
import { runIn } from './one-thread.ts';
import { Scheduler } from './scheduler.ts';
import { Users } from './users.ts';
import { World } from './world.ts';

/** What came of a seed. */
export interface Outcome {
  readonly seed: number;
  readonly failures: readonly string[];
  readonly trace: readonly string[];
  /** Of the trace: the same for each run of the seed. */
  readonly digest: string;
}

const [second, hour, day] = [1_000, 3_600_000, 24 * 3_600_000];

/** How long servers may take to settle after the network has healed. */
const patience = 8 * day;

/** Makes a database with an up-to-date schema, of which every simulated server gets a copy. */
export async function makeTemplate(folder: string): Promise<string> {
  const path = join(folder, 'template.db');
  const scheduler = new Scheduler();
  runIn(scheduler);
  const make = async () => {
    const database = await openDatabase({ kind: 'sqlite', path, flush: 'never' }, { log: silentLogger });
    await migrate(database, migrations, () => scheduler.now);
    await database.close();
  };
  await scheduler.run(make());
  return path;
}

/** Runs a seed. @param print whether what happens is shown */
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
  readonly #asides: Asides;

  constructor(world: World) {
    this.#world = world;
    this.#users = new Users(world);
    this.#asides = new Asides(world, () => this.#users.roomId);
  }

  async run(): Promise<void> {
    const world = this.#world;
    await world.start();
    await this.#asides.begin();
    await this.#users.makeRoom();
    world.watch(this.#users.roomId);
    world.planTrouble();
    await Promise.all([this.#users.live(), this.#asides.live(), this.#fan()]);
    await world.heal();
    await this.#asides.repeat();
    await this.#settle();
    await check(world, this.#users.roomId, this.#stays(), false);
    await this.#users.gather();
    await this.#settle();
    for (let round = 0; round < 2; round++) await this.#tie();
    const views = await check(world, this.#users.roomId, this.#stays());
    const sees = seesOf(views);
    checkTurnedDown(world, views, this.#users.turnedDown);
    await this.#asides.check(sees);
    if (world.failures.length > 0) return;
    await this.#asides.pulse(sees);
    await world.restart();
    await this.#settle();
    const again = await check(world, this.#users.roomId, this.#stays());
    await checkAcknowledged(world, again, this.#users.acknowledged);
    await this.#asides.check(sees);
    for (const view of views) {
      const after = again.find(({ server }) => server === view.server);
      const same = (one = view, two = after) =>
        JSON.stringify([...one.state].sort()) === JSON.stringify([...(two?.state ?? [])].sort());
      if (!same()) world.fail(`The state of ${view.server.name} is another after a restart`);
    }
  }

  async #fan(): Promise<void> {
    const { plan, servers } = this.#world;
    if (plan.fan > 0) await makeFan(this.#world, servers.at(-1)!, this.#users.roomId);
  }

  /** Lets time pass until nobody has anything to do. */
  async #settle(): Promise<void> {
    const { scheduler, servers, trace } = this.#world;
    const begun = scheduler.now;
    for (let pause = second; scheduler.now - begun < patience; pause = Math.min(pause * 1.5, hour)) {
      await scheduler.sleep(pause);
      const left: string[] = [];
      for (const server of servers) {
        const what = await unfinished(server, this.#users.roomId);
        if (what) left.push(`${server.name}: ${what}`);
      }
      if (left.length === 0) return trace.note('', 'SETTLED');
      if (scheduler.now - begun + pause >= patience) this.#world.fail(`Nothing goes on: ${left.join('; ')}`);
    }
  }

  /** One user of each server says something, one after the other: loose ends of the history are tied together. */
  async #tie(): Promise<void> {
    const { servers } = this.#world;
    for (const server of servers) {
      const head = await server.run?.rooms.engine.heads.get(this.#users.roomId);
      const userId = server.users.find((user) => head?.membership(user) === 'join');
      if (userId) await this.#users.act(server, userId, 'message');
      await this.#settle();
    }
  }

  #stays(): Stays {
    return new Map(
      this.#world.servers.flatMap(({ name, inSince }) => (inSince === undefined ? [] : [[name, inSince]])),
    );
  }
}
