import { isJsonObject, type JsonValue } from '../protocol/index.ts';
import type { EventFilterJson, RoomEventFilterJson } from './filter-json.ts';
import { allowedBy, anyOf, anyPattern, type TextMatcher } from './text-list.ts';

/** The members of an event that filters read. Account data and most ephemeral events have no sender. */
export interface FilteredEvent {
  readonly type: string;
  readonly sender?: string | undefined;
  readonly content?: JsonValue | undefined;
}

/** Selects events of any kind. Immutable. */
export class EventFilter {
  /** Maximum number of events; `undefined` when the server may choose. */
  readonly limit: number | undefined;
  /** The filter as JSON, for queries that can use its lists. */
  readonly json: EventFilterJson;
  readonly #type: TextMatcher | undefined;
  readonly #sender: TextMatcher | undefined;

  constructor(json: EventFilterJson) {
    this.json = json;
    this.limit = json.limit;
    this.#type = allowedBy(json.types, json.not_types, anyPattern);
    this.#sender = allowedBy(json.senders, json.not_senders, anyOf);
  }

  /** Whether the limit or an empty list excludes every event, so that no query is needed. */
  get passesNothing(): boolean {
    return this.limit === 0 || this.json.types?.length === 0 || this.json.senders?.length === 0;
  }

  /** Whether events of this type may pass. */
  passesType(type: string): boolean {
    return this.#type?.(type) ?? true;
  }

  /** Whether an event passes. An event without a sender passes unless `senders` is given. */
  passes(event: FilteredEvent): boolean {
    if (this.#type && !this.#type(event.type)) return false;
    return !this.#sender || this.#sender(event.sender ?? '');
  }
}

/**
 * Names of the filter field that requests the unread counts of each thread, and of the field of the response that has
 * them. The second is that of MSC3773.
 */
const threadCountsNames = [
  'unread_thread_notifications',
  'org.matrix.msc3773.unread_thread_notifications',
] as const;

/** Selects room events. Immutable. */
export class RoomEventFilter extends EventFilter {
  /** Whether to send only the memberships of users whose events are sent. */
  readonly lazyLoadMembers: boolean;
  /** With `lazyLoadMembers`, whether to send memberships again that the client has received before. */
  readonly includeRedundantMembers: boolean;
  /** The name of the field for the unread counts of each thread; `undefined` if the client does not request them. */
  readonly threadCountsField: string | undefined;
  /**
   * Selects events to which another event relates. The other event is by one of these senders and has one of these
   * relation types.
   */
  readonly relatedBy: {
    readonly senders: readonly string[] | undefined;
    readonly relTypes: readonly string[] | undefined;
  };
  readonly #room: TextMatcher | undefined;
  readonly #containsUrl: boolean | undefined;
  /** Tests the type of the event's own relation; an event without a relation has the type ''. Source: MSC3874. */
  readonly #relType: TextMatcher | undefined;

  constructor(json: RoomEventFilterJson) {
    super(json);
    this.lazyLoadMembers = json.lazy_load_members ?? false;
    this.includeRedundantMembers = json.include_redundant_members ?? false;
    this.threadCountsField = threadCountsNames.find((name) => json[name] === true);
    this.relatedBy = { senders: json.related_by_senders, relTypes: json.related_by_rel_types };
    this.#room = allowedBy(json.rooms, json.not_rooms, anyOf);
    this.#containsUrl = json.contains_url;
    this.#relType = allowedBy(
      json.rel_types ?? json['org.matrix.msc3874.rel_types'],
      json.not_rel_types ?? json['org.matrix.msc3874.not_rel_types'],
      anyOf,
    );
  }

  /** Whether `relatedBy` selects events. */
  get selectsByRelations(): boolean {
    return this.relatedBy.senders !== undefined || this.relatedBy.relTypes !== undefined;
  }

  /** Whether events of this room may pass. */
  passesRoom(roomId: string): boolean {
    return this.#room?.(roomId) ?? true;
  }

  /**
   * Whether an event passes, provided that its room passes. Callers that know the relations apply
   * `relatedBy`. `contains_url` tests for the key `url` in the content, whatever its value.
   */
  override passes(event: FilteredEvent): boolean {
    if (!super.passes(event)) return false;
    if (this.#relType && !this.#relType(relTypeOf(event.content))) return false;
    if (this.#containsUrl === undefined) return true;
    return this.#containsUrl === (isJsonObject(event.content) && Object.hasOwn(event.content, 'url'));
  }
}

function relTypeOf(content: JsonValue | undefined): string {
  const relation = isJsonObject(content) ? content['m.relates_to'] : undefined;
  const type = isJsonObject(relation) ? relation['rel_type'] : undefined;
  return typeof type === 'string' ? type : '';
}
