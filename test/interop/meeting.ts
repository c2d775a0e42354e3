import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { assertAgreement } from './agreement.ts';
import { lastWords, logEnds } from './last-words.ts';
import { type Member, Network } from './network.ts';
import { type Servers, sharedServers } from './shared-network.ts';
import { Someone } from './someone.ts';

/** People of one server. */
export interface Side {
  readonly one: Someone;
  readonly other: Someone;
}

/** Who acts in a scenario: the first of each side, and all of them. */
export interface Cast {
  readonly host: Someone;
  readonly guest: Someone;
  readonly hosts: Side;
  readonly guests: Side;
}

export interface ScenarioOptions {
  /** What the two ways round are called. */
  readonly ways?: readonly [string, string];
  /** Nobody of one of the servers is in a room with the other's at the end, so that there is no state to compare. */
  readonly endsApart?: boolean;
}

const roomOf = ["in a room of Hearth's", "in a room of the other's"] as const;
/** For what needs no room: who acts. */
export const fromTo = ['from Hearth', 'to Hearth'] as const;

/** A suite of scenarios between people of Hearth and people of the reference server. */
export class Meeting<Server extends Member = Member> {
  readonly #topic: string;
  readonly #people: { readonly here: Someone[]; readonly there: Someone[] } = { here: [], there: [] };
  readonly #compared = new Set<string>();
  #servers: Servers<Server> | undefined;

  private constructor(topic: string) {
    this.#topic = topic;
  }

  /** Scenarios on servers that other suites use, too. @param topic names the suite and its people: one word */
  static of(topic: string, define: (meeting: Meeting) => void): void {
    Meeting.#describe(topic, sharedServers, define);
  }

  /** Scenarios on servers of their own, which they may stop, kill and start. */
  static ofItsOwn(topic: string, define: (meeting: Meeting<Network['hearth' | 'reference']>) => void): void {
    const open = async () => {
      const network = await Network.start();
      return { servers: network, release: () => network.stop() };
    };
    Meeting.#describe(topic, open, define);
  }

  static #describe<Server extends Member>(
    topic: string,
    open: () => Promise<{ servers: Servers<Server>; release(): Promise<void> }>,
    define: (meeting: Meeting<Server>) => void,
  ): void {
    describe(`${topic}, with the reference server`, () => {
      const meeting = new Meeting<Server>(topic);
      let release: (() => Promise<void>) | undefined;
      before(async () => {
        const opened = await open();
        release = opened.release;
        meeting.#servers = opened.servers;
        for (const name of ['anna', 'ben']) await meeting.newcomers(name);
      });
      after(() => release?.());
      define(meeting);
    });
  }

  get servers(): Servers<Server> {
    assert.ok(this.#servers, 'the servers have not been started yet');
    return this.#servers;
  }

  /** People of Hearth. */
  get here(): Side {
    return sideOf(this.#people.here);
  }

  /** People of the reference server. */
  get there(): Side {
    return sideOf(this.#people.there);
  }

  /** Registers one more on each server. */
  async newcomers(name: string): Promise<{ here: Someone; there: Someone }> {
    const [here, there] = await Promise.all([
      Someone.register(this.servers.hearth, `${this.#topic}-${name}`),
      Someone.register(this.servers.reference, `${this.#topic}-${name}`),
    ]);
    this.welcome(here, there);
    return { here, there };
  }

  /** Has the rooms of two who are registered already be compared, too. */
  welcome(here: Someone, there: Someone): void {
    this.#people.here.push(here);
    this.#people.there.push(there);
  }

  /** A test, after which both servers must hold the same state of all rooms that it made and both are in. */
  readonly scenario = (
    title: string,
    run: () => Promise<void>,
    { endsApart = false }: ScenarioOptions = {},
  ): void => {
    void it(title, async () => {
      const { hearth, reference } = this.servers;
      const since = logEnds([hearth, reference]);
      try {
        await run();
        if (endsApart) return;
        await this.#compareRooms();
      } catch (cause) {
        const people = [...this.#people.here, ...this.#people.there];
        throw new Error(`${(cause as Error).message}\n${lastWords(people, since)}`, { cause });
      }
    });
  };

  /** A scenario both ways round: once Hearth has the room (or what there is), once the other server. */
  readonly bothWays = (
    title: string,
    run: (cast: Cast) => Promise<void>,
    options: ScenarioOptions = {},
  ): void => {
    const { ways = roomOf } = options;
    const cast = (hosts: Side, guests: Side) => ({ host: hosts.one, guest: guests.one, hosts, guests });
    this.scenario(`${title}, ${ways[0]}`, () => run(cast(this.here, this.there)), options);
    this.scenario(`${title}, ${ways[1]}`, () => run(cast(this.there, this.here)), options);
  };

  /**
   * Compares the rooms that both servers are in and that were not compared yet, of which there must be some. Hearth is
   * asked which they are once: whoever was answered that they are in a room must find it there from then on. The other
   * server may take its time.
   */
  async #compareRooms(): Promise<void> {
    const { here, there } = this.#people;
    let [ours, theirs] = await Promise.all([roomsOf(here), roomsOf(there)]);
    const shared = () =>
      [...ours.members].flatMap(([room, one]) => {
        const other = this.#compared.has(room) ? undefined : theirs.members.get(room);
        return other ? [{ room, one, other }] : [];
      });
    await eventually('the other server', async () => {
      if (shared().length > 0) return true;
      theirs = await roomsOf(there);
      return false;
    }).catch(async (cause: unknown) => {
      const before = ours;
      ours = await roomsOf(here);
      const lines = [
        `nobody is in a room with the other server; Hearth's people were in:`,
        ...before.lists,
        'some time later they are in:',
        ...ours.lists,
        "the other's are in:",
        ...theirs.lists,
        `compared before: ${[...this.#compared].join(' ')}`,
      ];
      throw new Error(lines.join('\n'), { cause });
    });
    for (const { room, one, other } of shared()) {
      await assertAgreement(room, one, other);
      this.#compared.add(room);
    }
  }
}

function sideOf([one, other]: readonly Someone[]): Side {
  assert.ok(one && other, 'nobody has come yet');
  return { one, other };
}

interface Rooms {
  /** The rooms that any of them is in, with one who is. */
  readonly members: ReadonlyMap<string, Someone>;
  /** What each of them was answered, for people. */
  readonly lists: readonly string[];
}

async function roomsOf(people: readonly Someone[]): Promise<Rooms> {
  const members = new Map<string, Someone>();
  const lists: string[] = [];
  for (const person of people) {
    const { status, body } = await person.call('GET', '/joined_rooms');
    lists.push(`  ${person.id}: ${status} ${JSON.stringify(body)}`);
    // Who has logged out is in no room that could be looked at.
    if (status === 401) continue;
    assert.equal(status, 200);
    for (const room of body['joined_rooms'] as string[]) members.set(room, person);
  }
  return { members, lists };
}
