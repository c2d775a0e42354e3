import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HearthConfiguration } from '../../src/configuration.ts';
import { SigningKey, writeSigningKeys } from '../../src/protocol/index.ts';
import { testConfiguration } from '../support/servers/server.ts';
import { disks } from './one-thread.ts';
import type { Dice } from './random.ts';
import { type Run, ServerProcess, type ServerSurroundings } from './server-process.ts';

let usual: HearthConfiguration | undefined;

/** A homeserver whose processes come and go; its database stays. */
export class SimulatedServer {
  readonly name: string;
  readonly users: readonly string[];
  readonly path: string;
  /** What was logged at `error` and above. */
  readonly errors: string[] = [];
  readonly #surroundings: ServerSurroundings;
  readonly #dice: Dice;
  /** Milliseconds that its clock is ahead of the others'. */
  readonly skew: number;
  readonly #configuration: HearthConfiguration;
  /** Milliseconds that its disk takes at most. */
  readonly #slowestDisk: number;
  #process: ServerProcess | undefined;
  #run: Run | undefined;
  #watched: string | undefined;
  /** Since when users of it have been in the watched room without a break, in simulated milliseconds. */
  inSince: number | undefined;

  constructor(
    name: string,
    users: readonly string[],
    surroundings: ServerSurroundings,
    dice: Dice,
    temper: { readonly skew: number; readonly slowestDisk: number },
  ) {
    this.name = name;
    this.users = users;
    this.#surroundings = surroundings;
    this.#dice = dice;
    this.skew = temper.skew;
    this.#slowestDisk = temper.slowestDisk;
    this.path = join(surroundings.folder, `${name}.db`);
    copyFileSync(surroundings.template, this.path);
    const keyFile = join(surroundings.folder, `${name}.key`);
    writeFileSync(keyFile, writeSigningKeys([SigningKey.fromSeed('k', dice.bytes(32))!]));
    usual ??= testConfiguration({ federationClient: { trusted_key_servers: [] } });
    this.#configuration = {
      ...usual,
      server: { ...usual.server, server_name: name },
      federationClient: { ...usual.federationClient, signing_key_path: keyFile },
    };
  }

  /** The process that runs, if one does. */
  get run(): Run | undefined {
    return this.#run;
  }

  /** Starts a process on the database. */
  async start(): Promise<void> {
    const process = new ServerProcess(this.name, this.#surroundings, this.#dice, {
      skew: this.skew,
      slowestDisk: this.#slowestDisk,
    });
    this.#process = process;
    void process.crashed.then(() => {
      if (this.#process === process) this.#process = this.#run = undefined;
    });
    disks.set(this.path, process);
    const run = await process.open(this.#configuration, this.path, (line) => this.#log(process, line));
    if (!process.isAlive) return;
    this.#run = run;
    if (this.#watched !== undefined) this.#watch(run, this.#watched);
  }

  /** From now on, `inSince` tells of that room. */
  watch(roomId: string): void {
    this.#watched = roomId;
    if (this.#run) this.#watch(this.#run, roomId);
  }

  #watch(run: Run, roomId: string): void {
    const { engine } = run.rooms;
    const look = () => {
      if (!run.isAlive) return;
      const isIn = engine.heads.peek(roomId)?.servers.has(this.name) === true;
      if (!isIn) this.inSince = undefined;
      else this.inSince ??= this.#surroundings.scheduler.now;
    };
    void engine.heads.get(roomId).then(look);
    engine.stream.subscribe((fact) => {
      if (fact.roomId === roomId) look();
    });
  }

  /** Ends the process after so many further steps that others can see; 0: at once. */
  crashAfter(steps: number): void {
    this.#process?.crashAfter(steps);
  }

  /** Whether a process runs, or starts. */
  get isUp(): boolean {
    return this.#process !== undefined;
  }

  /** Stops the process as an operator does. */
  async stop(): Promise<void> {
    const process = this.#process;
    this.#run = undefined;
    await process?.shutdown.run();
    process?.end();
    this.#process = undefined;
  }

  remove(): void {
    disks.delete(this.path);
    for (const suffix of ['', '-wal', '-shm']) rmSync(this.path + suffix, { force: true });
  }

  #log({ isAlive }: ServerProcess, line: string): void {
    if (!isAlive) return;
    const { level, time, ...more } = JSON.parse(line) as { level: string; time: string };
    const text = JSON.stringify(more);
    this.#surroundings.trace.note(this.name, `${level.toUpperCase()} ${text}`);
    if (level === 'error' || level === 'fatal') this.errors.push(text);
  }
}
