import { attempt } from './attempt.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import type { World } from './world.ts';

/** A message to the devices of somebody. */
interface Whisper {
  readonly id: string;
  readonly from: string;
  readonly server: SimulatedServer;
  readonly to: string;
  /** Simulated milliseconds at which it was sent, and first known to have been taken. */
  readonly sentAt: number;
  takenAt: number | undefined;
}

/** The device that everybody has from the beginning to the end. */
export const home = 'HOME';

/** As many as nobody gets. */
const all = { upTo: Number.MAX_SAFE_INTEGER, limit: 10_000 };

/** Messages between devices: each arrives once, and in the order in which they were sent. */
export class Whispers {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #sent: Whisper[] = [];

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  async send(server: SimulatedServer, from: string, to: string): Promise<void> {
    const sentAt = this.#world.scheduler.now;
    const id = `whisper ${this.#sent.length}`;
    const whisper: Whisper = { id, from, server, to, sentAt, takenAt: undefined };
    this.#sent.push(whisper);
    await this.#hand(whisper);
    // A client that is not sure asks again, with the same transaction id.
    if (this.#dice.chance(0.2)) await this.#hand(whisper);
  }

  /** Clients repeat what they had no answer to. */
  async repeat(): Promise<void> {
    for (const whisper of this.#sent) if (whisper.takenAt === undefined) await this.#hand(whisper);
  }

  async check(): Promise<void> {
    const { servers } = this.#world;
    for (const server of servers) {
      const { run } = server;
      if (run) for (const userId of server.users) await this.#checkQueue(run, userId);
    }
  }

  async #hand(whisper: Whisper): Promise<void> {
    const { id, from, server, to } = whisper;
    const what = `${from} sends ${id} to ${to}`;
    const answer = await attempt(this.#world, server, what, ({ besides }) =>
      besides.toDevice.send({
        sender: from,
        origin: { name: from, deviceId: home },
        txnId: id,
        type: 'sim.whisper',
        messages: new Map([[to, new Map([[home, { id }]])]]),
      }),
    );
    if (typeof answer === 'string') return;
    this.#world.trace.note(server.name, what);
    whisper.takenAt ??= this.#world.scheduler.now;
  }

  async #checkQueue({ besides }: Run, userId: string): Promise<void> {
    const { messages } = await besides.queues.pending(userId, home, all);
    const arrived = messages.map((text) => (JSON.parse(text) as { content: { id: string } }).content.id);
    const fail = (what: string) => this.#world.fail(`${what} (queue of ${userId}: ${arrived.join(', ')})`);
    if (new Set(arrived).size !== arrived.length) fail('A message to a device came more than once');
    const own = this.#sent.filter(({ to }) => to === userId);
    for (const { id, takenAt } of own) {
      if (takenAt !== undefined && !arrived.includes(id)) fail(`${id} was taken and has not arrived`);
    }
    for (const later of own) {
      for (const earlier of own) {
        const isInOrder = earlier.takenAt === undefined || earlier.takenAt >= later.sentAt;
        if (earlier.server !== later.server || isInOrder || !arrived.includes(later.id)) continue;
        if (arrived.indexOf(earlier.id) > arrived.indexOf(later.id)) {
          fail(`${later.id} came before ${earlier.id}, which was sent first`);
        }
      }
    }
  }
}
