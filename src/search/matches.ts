import type { RoomEventFilter } from '../filters/index.ts';
import type { Clock } from '../kernel/clock.ts';
import { foldText, TextQuery } from '../kernel/database/index.ts';
import { TimeSlices } from '../kernel/time-slices.ts';
import type { RoomReader, StoredEvent } from '../room-engine/index.ts';
import { type EventRelations, RoomView, type VisibleEvent } from '../rooms/index.ts';
import type { SearchIndex } from './search-index.ts';
import type { SearchPlace } from './search-token.ts';
import { type SearchKey, searchedText } from './searched-text.ts';

/** An event that matches. */
export interface Match extends VisibleEvent {
  /** Relevance, from 0 to 2. */
  readonly rank: number;
}

export interface MatchesDeps {
  readonly engine: RoomReader;
  readonly relations: EventRelations;
  readonly index: Pick<SearchIndex, 'caughtUp' | 'candidates'>;
  readonly clock: Clock;
}

/** A search for one page of matches. */
export interface MatchesRequest {
  readonly userId: string;
  readonly term: string;
  readonly keys: readonly SearchKey[];
  readonly filter: RoomEventFilter;
  /** Where the page starts, and the group of results that it continues. */
  readonly place: SearchPlace;
  /** Maximum number of matches. */
  readonly limit: number;
}

/** One page of matches. */
export interface Matches {
  /** The matching events, latest first. */
  readonly matches: readonly Match[];
  /** The nid below which the search continues; `undefined` when there are no more matches. */
  readonly before: number | undefined;
}

/** Number of candidates that are checked together. */
const candidatesPerBatch = 200;

/** Maximum number of candidates that one search checks. */
const maxCandidates = 2_000;

/**
 * Number of characters after which a search compares no further candidates: about 100 ms of work. The next page
 * continues with these candidates.
 */
const maxCharacters = 1_048_576;

/** A candidate that has the words of the search term. */
interface Found {
  readonly stored: StoredEvent;
  readonly rank: number;
}

/** Finds the matching events that a user may see, in joined and left rooms. */
export class MatchFinder {
  readonly #deps: MatchesDeps;

  constructor(deps: MatchesDeps) {
    this.#deps = deps;
  }

  /** Returns a page of matches. Waits until all events so far are indexed, or until a timeout. */
  async find(request: MatchesRequest): Promise<Matches> {
    const { engine, index, clock } = this.#deps;
    const { term, place, limit } = request;
    const query = new TextQuery(term);
    const rooms = await this.#rooms(request);
    if (query.isEmpty || rooms.size === 0) return { matches: [], before: undefined };
    await index.caughtUp();
    const scopes = [...rooms.keys()];
    const views = new RoomViews(engine, request.userId, rooms);
    const comparison = new Comparison(request, query, new TimeSlices(clock));
    const matches: Match[] = [];
    let before = place.before;
    for (let seen = 0; seen < maxCandidates && !comparison.isUsedUp; seen += candidatesPerBatch) {
      const range = { query, scopes, limit: candidatesPerBatch };
      const nids = await index.candidates(before === undefined ? range : { ...range, before });
      const events = await engine.events.getMany(nids);
      const { found, compared } = await comparison.run(nids.map((nid) => events.get(nid)));
      for (const match of await this.#visible(found, views, request)) {
        if (matches.length === limit) return { matches, before };
        matches.push(match);
        before = match.stored.nid;
      }
      if (nids.length < candidatesPerBatch && compared === nids.length) return { matches, before: undefined };
      before = nids[compared - 1];
    }
    return { matches, before };
  }

  /** Returns the ids of the rooms to search, by nid. */
  async #rooms({ userId, filter, place }: MatchesRequest): Promise<Map<number, string>> {
    const rooms = new Map<number, string>();
    for (const { roomId, roomNid, membership, forgotten } of (
      await this.#deps.engine.userRooms.of(userId)
    ).values()) {
      if (forgotten || membership === 'invite' || membership === 'knock') continue;
      if (filter.passesRoom(roomId) && (place.roomId ?? roomId) === roomId) rooms.set(roomNid, roomId);
    }
    return rooms;
  }

  /** Returns the matches that are visible to the user, in the same order. */
  async #visible(found: readonly Found[], views: RoomViews, { filter }: MatchesRequest): Promise<Match[]> {
    const { relations } = this.#deps;
    const visible = new Map<number, VisibleEvent>();
    for (const [roomNid, ofRoom] of Map.groupBy(found, ({ stored }) => stored.roomNid)) {
      const view = await views.of(roomNid);
      // Search must not reveal text that the user may not read any more: events of erased users.
      const displayable = await view?.displayable(ofRoom.map(({ stored }) => stored));
      const readable = displayable?.filter(({ isErased }) => !isErased) ?? [];
      for (const related of await relations.filterByRelations(readable, filter.relatedBy, view)) {
        visible.set(related.stored.nid, related);
      }
    }
    return found.flatMap(({ stored, rank }) => {
      const match = visible.get(stored.nid);
      return match ? [{ ...match, rank }] : [];
    });
  }
}

/** The views of a user on the rooms with matches; other rooms are not loaded. */
class RoomViews {
  readonly #engine: RoomReader;
  readonly #userId: string;
  readonly #rooms: ReadonlyMap<number, string>;
  readonly #views = new Map<number, RoomView | undefined>();

  /** @param rooms the rooms to search: their ids by nid */
  constructor(engine: RoomReader, userId: string, rooms: ReadonlyMap<number, string>) {
    this.#engine = engine;
    this.#userId = userId;
    this.#rooms = rooms;
  }

  /** Returns the view of a room; `undefined` when the user has never been joined to it. */
  async of(roomNid: number): Promise<RoomView | undefined> {
    if (this.#views.has(roomNid)) return this.#views.get(roomNid);
    const roomId = this.#rooms.get(roomNid);
    const head = roomId === undefined ? undefined : await this.#engine.heads.get(roomId);
    const view = head && (await RoomView.open(this.#engine, head, this.#userId));
    const searched = view?.hasBeenJoined ? view : undefined;
    this.#views.set(roomNid, searched);
    return searched;
  }
}

/** Compares candidates with the search term, with pauses where due, until it has compared `maxCharacters` or more. */
class Comparison {
  readonly #request: MatchesRequest;
  readonly #query: TextQuery;
  readonly #term: string;
  readonly #slices: TimeSlices;
  #characters = 0;

  constructor(request: MatchesRequest, query: TextQuery, slices: TimeSlices) {
    this.#request = request;
    this.#query = query;
    this.#term = foldText(request.term).trim();
    this.#slices = slices;
  }

  /** Whether no more candidates are to be compared. */
  get isUsedUp(): boolean {
    return this.#characters >= maxCharacters;
  }

  /**
   * Returns the candidates that have the words of the term, in the same order.
   * @param candidates `undefined` for an event that is not stored
   * @returns `compared`: the number of candidates, from the first, that were compared
   */
  async run(candidates: readonly (StoredEvent | undefined)[]): Promise<{ found: Found[]; compared: number }> {
    const found: Found[] = [];
    let compared = 0;
    for (; compared < candidates.length && !this.isUsedUp; compared++) {
      const stored = candidates[compared];
      const rank = stored && this.#rank(stored);
      if (rank !== undefined) found.push({ stored: stored!, rank });
      const pause = this.#slices.pauseIfDue();
      if (pause) await pause;
    }
    return { found, compared };
  }

  /** Returns the relevance of an event; `undefined` for an event that does not match. */
  #rank(stored: StoredEvent): number | undefined {
    const { keys, filter, place } = this.#request;
    const text = searchedText(stored, keys);
    if (text === undefined || !filter.passes(stored.event)) return undefined;
    if ((place.sender ?? stored.event.sender) !== stored.event.sender) return undefined;
    const folded = foldText(text);
    this.#characters += folded.length;
    return this.#query.matchesFolded(folded) ? rankOf(folded, this.#term) : undefined;
  }
}

/** Ranks texts with the exact term above texts with its words only, and short texts above long texts. */
const rankOf = (text: string, term: string): number =>
  (text.includes(term) ? 1 : 0) + Math.min(1, term.length / Math.max(1, text.length));
