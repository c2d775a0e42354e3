import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HearthConfiguration } from '../../src/configuration.ts';
import { SigningKey, writeSigningKeys } from '../../src/protocol/index.ts';
import { testConfiguration } from '../support/servers/server.ts';
import type { Dice } from './random.ts';
import { type Run, type ServerEnvironment, ServerProcess, type Traits } from './server-process.ts';
import { disks } from './simulated-platform.ts';

let defaultConfiguration: HearthConfiguration | undefined;

/** A homeserver whose processes start and crash; its database persists. */
export class SimulatedServer {
  readonly name: string;
  readonly users: readonly string[];
  /** Path of the database. */
  readonly path: string;
  /** Log lines at `error` and above. */
  readonly errors: string[] = [];
  readonly #environment: ServerEnvironment;
  readonly #dice: Dice;
  readonly #configuration: HearthConfiguration;
  readonly #traits: Traits;
  #process: ServerProcess | undefined;
  #run: Run | undefined;
  #watchedRoomId: string | undefined;
  /**
   * Time since which users of this server have been in the watched room without interruption, in simulated
   * milliseconds.
   */
  joinedSince: number | undefined;

  constructor(
    name: string,
    users: readonly string[],
    environment: ServerEnvironment,
    dice: Dice,
    traits: Traits,
  ) {
    this.name = name;
    this.users = users;
    this.#environment = environment;
    this.#dice = dice;
    this.#traits = traits;
    this.path = join(environment.folder, `${name}.db`);
    copyFileSync(environment.template, this.path);
    const keyFile = join(environment.folder, `${name}.key`);
    writeFileSync(keyFile, writeSigningKeys([SigningKey.fromSeed('k', dice.bytes(32))!]));
    defaultConfiguration ??= testConfiguration({ federationClient: { trusted_key_servers: [] } });
    this.#configuration = {
      ...defaultConfiguration,
      server: { ...defaultConfiguration.server, server_name: name },
      federationClient: { ...defaultConfiguration.federationClient, signing_key_path: keyFile },
    };
  }

  /** Its clock is ahead of simulated time by this many milliseconds. */
  get skew(): number {
    return this.#traits.skew;
  }

  /** The running process, if there is one. */
  get run(): Run | undefined {
    return this.#run;
  }

  /** Starts a process on the database. */
  async start(): Promise<void> {
    const process = new ServerProcess(this.name, this.#environment, this.#dice, this.#traits);
    this.#process = process;
    void process.ended.then(() => {
      if (this.#process === process) this.#process = this.#run = undefined;
    });
    disks.set(this.path, process);
    const run = await process.open(this.#configuration, this.path, (line) => this.#log(process, line));
    if (!process.isAlive) return;
    this.#run = run;
    if (this.#watchedRoomId !== undefined) this.#watch(run, this.#watchedRoomId);
  }

  /** Keeps `joinedSince` up to date for this room. */
  watch(roomId: string): void {
    this.#watchedRoomId = roomId;
    if (this.#run) this.#watch(this.#run, roomId);
  }

  #watch(run: Run, roomId: string): void {
    const { engine } = run.rooms;
    const update = () => {
      if (!run.isAlive) return;
      const isJoined = engine.heads.peek(roomId)?.servers.has(this.name) === true;
      if (!isJoined) this.joinedSince = undefined;
      else this.joinedSince ??= this.#environment.scheduler.now;
    };
    void engine.heads.get(roomId).then(update);
    engine.stream.subscribe((fact) => {
      if (fact.roomId === roomId) update();
    });
  }

  /**
   * Crashes the process after `steps` further steps that are visible outside (writes, requests, answers); 0:
   * at once.
   */
  crashAfter(steps: number): void {
    this.#process?.crashAfter(steps);
  }

  /** Whether a process runs or is starting. */
  get isUp(): boolean {
    return this.#process !== undefined;
  }

  /** Stops the process gracefully. */
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
    this.#environment.trace.note(this.name, `${level.toUpperCase()} ${text}`);
    if (level === 'error' || level === 'fatal') this.errors.push(text);
  }
}
