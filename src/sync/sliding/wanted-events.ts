import { everything, type Filter, type FilteredEvent, RoomEventFilter } from '../../filters/index.ts';

/** Lets through what those whom a user ignores have to say of the room, and nothing else of theirs. */
class WithoutIgnored extends RoomEventFilter {
  readonly #ignored: ReadonlySet<string>;

  constructor(ignored: ReadonlySet<string>) {
    super({});
    this.#ignored = ignored;
  }

  override passes(event: FilteredEvent & { readonly stateKey?: string | undefined }): boolean {
    return event.stateKey !== undefined || !this.#ignored.has(event.sender ?? '');
  }
}

/** The events that are told to a user who ignores some others. Source: client-server API, "Ignoring Users". */
export function filterFor(ignored: ReadonlySet<string>): Filter {
  if (ignored.size === 0) return everything;
  return { ...everything, room: { ...everything.room, timeline: new WithoutIgnored(ignored) } };
}
