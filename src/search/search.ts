import { compileRoomEventFilter } from '../filters/index.ts';
import { sizeOfJson } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ClientEvent, JsonObject } from '../protocol/index.ts';
import type { Rooms, Signalled, Viewer } from '../rooms/index.ts';
import { highlightsOf } from './highlights.ts';
import { type Match, type Matches, type MatchesRequest, MatchFinder } from './matches.ts';
import { ResultContexts } from './result-context.ts';
import type { SearchIndex } from './search-index.ts';
import { decodeSearchPlace, encodeSearchPlace } from './search-token.ts';
import { type SearchKey, searchedText, searchKeys } from './searched-text.ts';

export type GroupKey = 'room_id' | 'sender';

/** The criteria for room events of a request. */
export interface RoomEventsCriteria {
  readonly search_term: string;
  readonly keys?: readonly SearchKey[];
  readonly filter?: object;
  readonly order_by?: 'recent' | 'rank';
  readonly event_context?: {
    readonly before_limit?: number;
    readonly after_limit?: number;
    readonly include_profile?: boolean;
  };
  readonly include_state?: boolean;
  readonly groupings?: { readonly group_by?: readonly { readonly key?: GroupKey }[] };
}

export interface SearchDeps {
  readonly rooms: Pick<Rooms, 'engine' | 'clientEvents' | 'stateReader'>;
  readonly index: SearchIndex;
  readonly clock: Clock;
}

/** Number of results on a page when the request sets no limit. */
const defaultLimit = 10;

/** Maximum number of results on a page. */
const maxResults = 50;

/** Maximum number of latest matches that are ranked by relevance. */
const maxRanked = 500;

/** Maximum number of matches that are counted. */
const maxCounted = 500;

/** Number of events on each side of a result when the request sets no limit. */
const defaultContext = 5;

/** Maximum number of events on each side of a result. */
const maxContext = 20;

/**
 * A page ends when its results, with context and state, have more than this number of bytes (estimated). A page of
 * ordinary messages has several times fewer.
 */
const maxPageBytes = 4_194_304;

/** Searches events in the rooms of a user. Source: client-server API, "Server Side Search". */
export class Search {
  readonly #deps: SearchDeps;
  readonly #finder: MatchFinder;
  readonly #contexts: ResultContexts;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
    const { engine, clientEvents } = deps.rooms;
    this.#finder = new MatchFinder({ ...deps, engine, relations: clientEvents.relations });
    this.#contexts = new ResultContexts(deps.rooms);
  }

  /**
   * Searches the events of the viewer's rooms.
   * @param token `next_batch` of an earlier response
   * @param waiting the client's request: when it ends, the server stops waiting for the members of rooms with partial
   * state
   * @returns the result category `room_events`
   * @throws MatrixError M_INVALID_PARAM for an invalid token, M_BAD_JSON for an invalid filter
   */
  async roomEvents(
    viewer: Viewer,
    criteria: RoomEventsCriteria,
    token: string | undefined,
    waiting?: Signalled,
  ): Promise<object> {
    const filter = compileRoomEventFilter(criteria.filter ?? {});
    const request: MatchesRequest = {
      userId: viewer.userId,
      term: criteria.search_term,
      keys: criteria.keys ?? searchKeys,
      filter,
      place: token === undefined ? {} : decodeSearchPlace(token),
      limit: Math.max(1, Math.min(filter.limit ?? defaultLimit, maxResults)),
    };
    const found = criteria.order_by === 'recent' ? await this.#latest(request) : await this.#best(request);
    const { results, state } = await this.#results(viewer, criteria, found.matches, waiting);
    const page = found.first(results.length);
    return {
      count: page.count,
      highlights: highlightsOf(
        criteria.search_term,
        page.matches.map(({ stored }) => searchedText(stored, request.keys) ?? ''),
      ),
      results,
      ...(criteria.include_state ? { state } : undefined),
      ...(criteria.groupings && { groups: groupsOf(criteria.groupings, page) }),
      ...(page.next === undefined ? undefined : { next_batch: page.next }),
    };
  }

  /** Returns a page of matches, latest first. Finds further matches too, because clients show the total count. */
  async #latest(request: MatchesRequest): Promise<FoundMatches> {
    const { place, limit } = request;
    const skipped = Math.max(0, place.skip ?? 0);
    const latest: Matches = await this.#finder.find({ ...request, limit: maxCounted });
    const matches = latest.matches.slice(0, limit);
    const count = skipped + latest.matches.length;
    const first = (shown: number): ResultPage => {
      // A full page has a token even when it is the last one, as in the responses of other servers.
      const hasAll = shown === matches.length && shown < limit;
      const before = hasAll ? latest.before : matches[shown - 1]?.stored.nid;
      const skip = skipped + shown;
      const next = before === undefined ? undefined : encodeSearchPlace({ ...place, before, skip });
      return { matches: matches.slice(0, shown), count, next, before };
    };
    return { matches, first };
  }

  /** Returns a page of the most relevant of the latest matches. */
  async #best(request: MatchesRequest): Promise<FoundMatches> {
    const { place, limit } = request;
    const skip = Math.max(0, place.skip ?? 0);
    const { matches } = await this.#finder.find({ ...request, limit: maxRanked });
    const ranked = matches.toSorted((a, b) => b.rank - a.rank || b.stored.nid - a.stored.nid);
    const page = ranked.slice(skip, skip + limit);
    const first = (shown: number): ResultPage => {
      const hasAll = shown === page.length && shown < limit;
      const next = hasAll ? undefined : encodeSearchPlace({ ...place, skip: skip + shown });
      return { matches: page.slice(0, shown), count: ranked.length, next, before: undefined };
    };
    return { matches: page, first };
  }

  /**
   * Returns results until they have more than `maxPageBytes`, at least one if there are matches. Also returns the state
   * of their rooms, if it is requested.
   */
  async #results(
    viewer: Viewer,
    { event_context: context, include_state: includesState }: RoomEventsCriteria,
    matches: readonly Match[],
    waiting: Signalled | undefined,
  ): Promise<{ results: object[]; state: Record<string, ClientEvent[]> }> {
    const { clientEvents, stateReader } = this.#deps.rooms;
    const events = await clientEvents.render(matches, viewer);
    const limitOf = (limit = defaultContext) => Math.max(0, Math.min(limit, maxContext));
    const request = {
      beforeLimit: limitOf(context?.before_limit),
      afterLimit: limitOf(context?.after_limit),
      includeProfile: context?.include_profile ?? false,
    };
    const results: object[] = [];
    const state: Record<string, ClientEvent[]> = {};
    let bytes = 0;
    for (const [index, match] of matches.entries()) {
      if (bytes > maxPageBytes) break;
      const around = context && (await this.#contexts.around(match, viewer, request));
      const result = { rank: match.rank, result: events[index], ...(around && { context: around }) };
      results.push(result);
      bytes += sizeOfJson(result);
      const { roomId } = match.stored.event;
      if (!includesState || state[roomId]) continue;
      state[roomId] = await stateReader.all(viewer, roomId, waiting);
      bytes += sizeOfJson(state[roomId]);
    }
    return { results, state };
  }
}

/** Matches. A page shows the first of them. */
interface FoundMatches {
  readonly matches: readonly Match[];
  /** Returns the page with the first matches. @param shown number of these matches: at least one if there are any */
  first(shown: number): ResultPage;
}

interface ResultPage {
  readonly matches: readonly Match[];
  /** Number of matches on all pages, counted up to a maximum. */
  readonly count: number;
  /** Token of the next page. */
  readonly next: string | undefined;
  /** For results in the order of time: the next page begins below this nid. */
  readonly before: number | undefined;
}

function groupsOf(
  { group_by: keys = [] }: NonNullable<RoomEventsCriteria['groupings']>,
  { matches, before }: ResultPage,
): JsonObject {
  const groups: Record<string, JsonObject> = {};
  for (const { key } of keys) {
    if (key === undefined) continue;
    const matchesByValue = Map.groupBy(matches, ({ stored: { event } }) =>
      key === 'room_id' ? event.roomId : event.sender,
    );
    groups[key] = Object.fromEntries(
      [...matchesByValue].map(([value, ofGroup], order) => [
        value,
        {
          order,
          results: ofGroup.map(({ stored }) => stored.event.eventId),
          ...(before === undefined ? undefined : { next_batch: nextOfGroup(key, value, before) }),
        },
      ]),
    );
  }
  return groups;
}

const nextOfGroup = (key: GroupKey, value: string, before: number): string =>
  encodeSearchPlace(key === 'room_id' ? { before, roomId: value } : { before, sender: value });
