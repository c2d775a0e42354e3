import { type Cache, type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { compileServerAcl, isServerAllowed, type ServerAcl } from '../protocol/index.ts';
import type { EventStore } from './timeline/event-store.ts';
import type { RoomHead } from './timeline/room-head.ts';

/** Maximum number of cached compiled ACLs. */
const maxCompiledLists = 500;

/** Checks servers against the ACLs of rooms. Source: server-server API, "Server Access Control Lists (ACLs)". */
export class ServerAcls {
  readonly #events: EventStore;
  /** Compiled ACLs by the nid of the `m.room.server_acl` event. */
  readonly #compiled: Cache<number, ServerAcl>;

  constructor(events: EventStore, caches: CacheRegistry) {
    this.#events = events;
    this.#compiled = caches.create('server_acls', {
      size: maxCompiledLists,
      maxBytes: 2 * MiB,
      sizeOf: sizeOfAcl,
    });
  }

  /** Returns whether the current state of the room allows the server. */
  async allows(head: RoomHead, serverName: string): Promise<boolean> {
    const entry = head.entry('m.room.server_acl', '');
    if (!entry) return true;
    const cached = this.#compiled.get(entry.nid);
    if (cached) return isServerAllowed(cached, serverName);
    const stored = await this.#events.get(entry.nid);
    if (!stored) throw new Error(`event ${entry.nid} of a room's state is missing`);
    const acl = compileServerAcl(stored.event.content);
    this.#compiled.set(entry.nid, acl);
    return isServerAllowed(acl, serverName);
  }
}

/** Estimated bytes of a pattern, or of a cached verdict with its server name. */
const nameBytes = 100;

/** Estimated bytes of a list without its patterns and verdicts. */
const listBytes = 1_000;

/** Expected number of cached verdicts per list. */
const expectedVerdicts = 50;

function sizeOfAcl({ allow, deny }: ServerAcl): number {
  const patterns = [allow, deny].flatMap(({ names, suffixes, others }) => [
    names.size,
    suffixes.size,
    others.length,
  ]);
  return listBytes + nameBytes * patterns.reduce((sum, count) => sum + count, expectedVerdicts);
}
