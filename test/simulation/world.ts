import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeConnections } from './connections.ts';
import { Network, reliableConditions } from './network.ts';
import { type Plan, planOf } from './plan.ts';
import { Dice } from './random.ts';
import { RejectedState } from './rejected-state.ts';
import { Scheduler } from './scheduler.ts';
import { SimulatedServer } from './server.ts';
import { disks, useScheduler } from './simulated-platform.ts';
import { Trace } from './trace.ts';

const serverNames = ['a.sim', 'b.sim', 'c.sim', 'd.sim', 'e.sim'];
const firstLocalparts = ['ann', 'ben', 'cat', 'dan', 'eve'];
const secondLocalparts = ['abe', 'bea', 'cid', 'dot', 'eli'];

/** The whole simulation of one seed: its servers, network, clock and randomness. */
export class World {
  readonly seed: number;
  readonly dice: Dice;
  readonly plan: Plan;
  readonly scheduler = new Scheduler();
  readonly trace: Trace;
  readonly network: Network;
  readonly servers: readonly SimulatedServer[];
  /** Descriptions of all mistakes that checks have found. */
  readonly failures: string[] = [];
  readonly #folder: string;
  /** Whether `heal` was called. Then the simulation plans no further crashes, restarts and partitions. */
  #isHealed = false;

  constructor(seed: number, template: string, print: boolean) {
    this.seed = seed;
    this.dice = new Dice(seed);
    this.plan = planOf(seed, this.dice.fork('plan'));
    useScheduler(this.scheduler);
    this.trace = new Trace(() => this.scheduler.elapsed, print);
    this.network = new Network(this.scheduler, this.dice.fork('network'), this.trace);
    this.#folder = mkdtempSync(join(tmpdir(), 'hearth-simulation-'));
    const { joinsWithAllMembers } = this.plan;
    const environment = { ...this, folder: this.#folder, template, joinsWithAllMembers };
    this.servers = serverNames.slice(0, this.plan.servers).map((name, index) => {
      const users = [firstLocalparts[index], secondLocalparts[index]]
        .slice(0, this.plan.users)
        .map((user) => `@${user}:${name}`);
      const skew = this.dice.int(-this.plan.skew, this.plan.skew);
      const traits = { skew, maxDiskDelay: this.plan.maxDiskDelay };
      return new SimulatedServer(name, users, environment, this.dice.fork(name), traits);
    });
    const { rejectedState } = this.plan;
    if (rejectedState > 0) {
      const changed = new RejectedState(this.servers, {
        dice: this.dice.fork('rejected state'),
        trace: this.trace,
        chance: rejectedState,
      });
      this.network.change = (to, request, answer) => changed.change(to, request, answer);
    }
    disks.clear();
  }

  readonly fail = (what: string): void => {
    this.failures.push(what);
    this.trace.note('CHECK', what);
  };

  /** Runs simulated time until `work` has settled. */
  run<T>(work: Promise<T>): Promise<T> {
    return this.scheduler.run(work);
  }

  async start(): Promise<void> {
    this.trace.note('', `seed ${this.seed}: ${JSON.stringify(this.plan)}`);
    await Promise.all(this.servers.map((server) => server.start()));
    this.network.conditions = this.plan.conditions;
  }

  /** Makes each server record since when it has been joined to this room. */
  watch(roomId: string): void {
    for (const server of this.servers) server.watch(roomId);
  }

  /** Schedules crashes and network partitions at random times. */
  scheduleFailures(): void {
    const { plan, dice, scheduler, servers } = this;
    for (let index = 0; index < plan.partitions; index++) {
      const begins = dice.chance(0.6) ? dice.pick(plan.bursts) - 500 : dice.int(0, plan.duration);
      scheduler.after(begins, () => this.#partition());
    }
    for (let index = 0; index < plan.crashes; index++) {
      const server = dice.pick(servers);
      const steps = dice.int(0, 12);
      scheduler.after(dice.int(0, plan.duration), () => {
        if (!this.#isHealed) server.crashAfter(steps);
      });
    }
    for (const server of servers) this.#restartAfterCrashes(server);
  }

  /** Ends all partitions, starts the servers that are down, and allows no further crashes. */
  async heal(): Promise<void> {
    this.#isHealed = true;
    this.trace.note('', 'HEALED');
    this.network.conditions = reliableConditions;
    this.network.split(new Map());
    for (const server of this.servers) {
      server.crashAfter(Number.POSITIVE_INFINITY);
      if (!server.isUp) await this.#start(server);
    }
  }

  /** Crashes and restarts every server, so that only the data on their disks remains. */
  async restart(): Promise<void> {
    for (const server of this.servers) {
      server.crashAfter(0);
      await Promise.resolve();
    }
    for (const server of this.servers) if (!server.isUp) await this.#start(server);
  }

  remove(): void {
    for (const server of this.servers) server.crashAfter(0);
    closeConnections();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Restarts the server some time after each crash. */
  #restartAfterCrashes(server: SimulatedServer): void {
    const check = () => {
      if (this.#isHealed) return;
      if (!server.isUp && this.dice.chance(0.3)) void this.#start(server);
      this.scheduler.after(this.plan.duration / 30, check);
    };
    check();
  }

  async #start(server: SimulatedServer): Promise<void> {
    this.trace.note(server.name, 'restarts');
    await server.start();
  }

  #partition(): void {
    if (this.#isHealed) return;
    const sides = new Map(this.servers.map(({ name }) => [name, this.dice.int(0, 1)]));
    this.network.split(sides);
    this.trace.note('', `PARTITIONED: ${[...sides].map(([name, side]) => `${name}=${side}`).join(' ')}`);
    this.scheduler.after(this.dice.int(100, this.plan.duration), () => {
      if (this.#isHealed) return;
      this.network.split(new Map());
      this.trace.note('', 'PARTITION ENDED');
    });
  }
}
