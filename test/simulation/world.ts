import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fairWeather, Network } from './network.ts';
import { disks, runIn } from './one-thread.ts';
import { type Plan, planOf } from './plan.ts';
import { Dice } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedServer } from './server.ts';
import { Trace } from './trace.ts';

const names = ['a.sim', 'b.sim', 'c.sim', 'd.sim', 'e.sim'];
const [first, second] = [
  ['ann', 'ben', 'cat', 'dan', 'eve'],
  ['abe', 'bea', 'cid', 'dot', 'eli'],
];

/** Everything of one seed: servers, their network, and chance. */
export class World {
  readonly seed: number;
  readonly dice: Dice;
  readonly plan: Plan;
  readonly scheduler = new Scheduler();
  readonly trace: Trace;
  readonly network: Network;
  readonly servers: readonly SimulatedServer[];
  /** What is wrong. */
  readonly failures: string[] = [];
  readonly #folder: string;
  /** Whether servers that have crashed may stay so for some time. */
  #isHealed = false;

  constructor(seed: number, template: string, print: boolean) {
    this.seed = seed;
    this.dice = new Dice(seed);
    this.plan = planOf(seed, this.dice.fork('plan'));
    runIn(this.scheduler);
    this.trace = new Trace(() => this.scheduler.elapsed, print);
    this.network = new Network(this.scheduler, this.dice.fork('network'), this.trace);
    this.#folder = mkdtempSync(join(tmpdir(), 'hearth-simulation-'));
    const { joinsWhole } = this.plan;
    const surroundings = { ...this, folder: this.#folder, template, joinsWhole };
    this.servers = names.slice(0, this.plan.servers).map((name, index) => {
      const users = [first[index], second[index]].slice(0, this.plan.users).map((user) => `@${user}:${name}`);
      const skew = this.dice.int(-this.plan.skew, this.plan.skew);
      const temper = { skew, slowestDisk: this.plan.slowestDisk };
      return new SimulatedServer(name, users, surroundings, this.dice.fork(name), temper);
    });
    disks.clear();
  }

  readonly fail = (what: string): void => {
    this.failures.push(what);
    this.trace.note('CHECK', what);
  };

  /** Lets simulated time pass until `work` has settled. */
  run<T>(work: Promise<T>): Promise<T> {
    return this.scheduler.run(work);
  }

  async start(): Promise<void> {
    const { seed, ...plan } = { seed: this.seed, ...this.plan };
    this.trace.note('', `seed ${seed}: ${JSON.stringify(plan)}`);
    await Promise.all(this.servers.map((server) => server.start()));
    this.network.weather = this.plan.weather;
  }

  /** Notes who is in that room. */
  watch(roomId: string): void {
    for (const server of this.servers) server.watch(roomId);
  }

  /** Lets servers crash and parts of the network fail, at times that chance names. */
  planTrouble(): void {
    const { plan, dice, scheduler, servers } = this;
    for (let index = 0; index < plan.partitions; index++) {
      const begins = dice.chance(0.6) ? dice.pick(plan.bursts) - 500 : dice.int(0, plan.duration);
      scheduler.after(begins, () => this.#part());
    }
    for (let index = 0; index < plan.crashes; index++) {
      const server = dice.pick(servers);
      const steps = dice.int(0, 12);
      scheduler.after(dice.int(0, plan.duration), () => {
        if (!this.#isHealed) server.crashAfter(steps);
      });
    }
    for (const server of servers) this.#keepUp(server);
  }

  /** From now on everybody reaches everybody, and nobody crashes. */
  async heal(): Promise<void> {
    this.#isHealed = true;
    this.trace.note('', 'HEALED');
    this.network.weather = fairWeather;
    this.network.split(new Map());
    for (const server of this.servers) {
      server.crashAfter(Number.POSITIVE_INFINITY);
      if (!server.isUp) await this.#start(server);
    }
  }

  /** Crashes every server and starts it again, so that what they say is what is on their disks. */
  async restart(): Promise<void> {
    for (const server of this.servers) {
      server.crashAfter(0);
      await Promise.resolve();
    }
    for (const server of this.servers) if (!server.isUp) await this.#start(server);
  }

  remove(): void {
    for (const server of this.servers) server.crashAfter(0);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Starts the server again some time after each crash. */
  #keepUp(server: SimulatedServer): void {
    const look = () => {
      if (this.#isHealed) return;
      if (!server.isUp && this.dice.chance(0.3)) void this.#start(server);
      this.scheduler.after(this.plan.duration / 30, look);
    };
    look();
  }

  async #start(server: SimulatedServer): Promise<void> {
    this.trace.note(server.name, 'starts again');
    await server.start();
  }

  #part(): void {
    if (this.#isHealed) return;
    const sides = new Map(this.servers.map(({ name }) => [name, this.dice.int(0, 1)]));
    this.network.split(sides);
    this.trace.note('', `PARTED: ${[...sides].map(([name, side]) => `${name}=${side}`).join(' ')}`);
    this.scheduler.after(this.dice.int(100, this.plan.duration), () => {
      if (this.#isHealed) return;
      this.network.split(new Map());
      this.trace.note('', 'JOINED AGAIN');
    });
  }
}
