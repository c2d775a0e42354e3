import type { RoomEventFilter } from '../filters/index.ts';
import { foldText, TextQuery } from '../kernel/database/index.ts';
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
  readonly index: SearchIndex;
}

export interface MatchesRequest {
  readonly userId: string;
  readonly term: string;
  readonly keys: readonly SearchKey[];
  readonly filter: RoomEventFilter;
  /** Start and group of the page. */
  readonly place: SearchPlace;
  /** Maximum number of matches. */
  readonly limit: number;
}

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

/** Finds the matching events that a user may see, in joined and left rooms. */
export class MatchFinder {
  readonly #deps: MatchesDeps;

  constructor(deps: MatchesDeps) {
    this.#deps = deps;
  }

  /** Returns a page of matches. Waits until all events so far are indexed. */
  async find(request: MatchesRequest): Promise<Matches> {
    const { engine, index } = this.#deps;
    const { term, place, limit } = request;
    const query = new TextQuery(term);
    const views = await this.#views(request);
    if (query.isEmpty || views.size === 0) return { matches: [], before: undefined };
    await index.caughtUp();
    const scopes = [...views.keys()];
    const matches: Match[] = [];
    let before = place.before;
    for (let seen = 0; seen < maxCandidates; seen += candidatesPerBatch) {
      const range = { query, scopes, limit: candidatesPerBatch };
      const nids = await index.candidates(before === undefined ? range : { ...range, before });
      const events = await engine.events.getMany(nids);
      const wantedEvents = nids
        .map((nid) => events.get(nid))
        .filter((stored) => stored !== undefined)
        .filter((stored) => isWanted(stored, request, query));
      for (const match of await this.#visible(wantedEvents, views, request)) {
        if (matches.length === limit) return { matches, before };
        matches.push({ ...match, rank: rankOf(match.stored, request) });
        before = match.stored.nid;
      }
      if (nids.length < candidatesPerBatch) return { matches, before: undefined };
      before = nids.at(-1);
    }
    return { matches, before };
  }

  /** Returns the rooms to search, by nid. */
  async #views({ userId, filter, place }: MatchesRequest): Promise<Map<number, RoomView>> {
    const { engine } = this.#deps;
    const views = new Map<number, RoomView>();
    for (const { roomId, roomNid, membership, forgotten } of (await engine.userRooms.of(userId)).values()) {
      if (forgotten || membership === 'invite' || membership === 'knock') continue;
      if (!filter.passesRoom(roomId) || (place.roomId ?? roomId) !== roomId) continue;
      const head = await engine.heads.get(roomId);
      const view = head && (await RoomView.open(engine, head, userId));
      if (view?.hasBeenJoined) views.set(roomNid, view);
    }
    return views;
  }

  /** Returns the events that are visible to the user, in the same order. */
  async #visible(
    events: readonly StoredEvent[],
    views: ReadonlyMap<number, RoomView>,
    { filter }: MatchesRequest,
  ): Promise<VisibleEvent[]> {
    const { relations } = this.#deps;
    const visible = new Map<number, VisibleEvent>();
    for (const [roomNid, ofRoom] of Map.groupBy(events, (stored) => stored.roomNid)) {
      const view = views.get(roomNid);
      // Search must not reveal text that the user may not read any more: events of erased users.
      const readable = view ? (await view.displayable(ofRoom)).filter(({ isErased }) => !isErased) : [];
      for (const related of await relations.filterByRelations(readable, filter.relatedBy, view)) {
        visible.set(related.stored.nid, related);
      }
    }
    return events.map(({ nid }) => visible.get(nid)).filter((one) => one !== undefined);
  }
}

function isWanted(stored: StoredEvent, { keys, filter, place }: MatchesRequest, query: TextQuery): boolean {
  const text = searchedText(stored, keys);
  if (text === undefined || !filter.passes(stored.event)) return false;
  return (place.sender ?? stored.event.sender) === stored.event.sender && query.matches(text);
}

/** Ranks texts with the exact term above texts with its words only, and short texts above long texts. */
function rankOf(stored: StoredEvent, { keys, term }: MatchesRequest): number {
  const text = foldText(searchedText(stored, keys) ?? '');
  const folded = foldText(term).trim();
  return (text.includes(folded) ? 1 : 0) + Math.min(1, folded.length / Math.max(1, text.length));
}
