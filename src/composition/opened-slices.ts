import type { EduHandlersByType } from '../federation/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { AnyStream } from '../kernel/streams/index.ts';
import type { OpenEventChecks } from '../room-engine/index.ts';
import type { SyncSource } from '../sync-contract/index.ts';
import type { Shutdown } from './shutdown.ts';

/**
 * The routes, streams and other parts that an opened slice adds to the server. Its `open…` function returns
 * them together with its services.
 */
export interface OpenedSlice {
  readonly routes?: readonly Route[];
  /** The parts of syncs that the slice contributes. */
  readonly syncSources?: readonly SyncSource[];
  /** Handlers of EDUs that other servers send. */
  readonly eduHandlers?: EduHandlersByType;
  /** Checks of events of local users. Only slices that are opened before the rooms may have them. */
  readonly eventChecks?: OpenEventChecks;
  /** Streams whose facts a reader process needs. */
  readonly streams?: readonly AnyStream[];
  /** Starts the background work of the slice; called when all slices are opened. */
  start?(): void | Promise<void>;
  /** Stops the slice; called before the slices that were opened earlier are stopped. */
  stop?(): unknown;
}

/** The parts of slices that the server collects. */
type CollectedPart = Exclude<keyof OpenedSlice, 'start' | 'stop'>;

/** Collects the parts that the opened slices add to the server. */
export class OpenedSlices {
  readonly #shutdown: Shutdown;
  readonly #slices: OpenedSlice[] = [];
  /**
   * The parts that were read from all slices. `add` refuses them in slices that are opened later, because they would
   * have no effect.
   */
  readonly #readParts = new Set<CollectedPart>();

  constructor(shutdown: Shutdown) {
    this.#shutdown = shutdown;
  }

  /**
   * Adds a slice as soon as it is opened.
   * @param name for errors, and for the log of the shutdown
   * @returns the slice
   * @throws Error when the slice has a part that was read from all slices before, for instance sync sources after sync
   * was opened
   */
  add<S extends OpenedSlice>(name: string, slice: S): S {
    for (const part of this.#readParts) {
      if (slice[part] !== undefined)
        throw new Error(
          `the ${part} of ${name} would have no effect: open the slice before the ${part} of all slices are read`,
        );
    }
    this.#slices.push(slice);
    if (slice.stop) this.#shutdown.add(name, () => slice.stop?.());
    return slice;
  }

  /** Starts the slices in the order in which they were opened. */
  async start(): Promise<void> {
    for (const slice of this.#slices) await slice.start?.();
  }

  get routes(): Route[] {
    return this.#read('routes').flatMap(({ routes = [] }) => routes);
  }

  get syncSources(): SyncSource[] {
    return this.#read('syncSources').flatMap(({ syncSources = [] }) => syncSources);
  }

  get eduHandlers(): EduHandlersByType[] {
    return this.#read('eduHandlers').flatMap(({ eduHandlers }) => (eduHandlers ? [eduHandlers] : []));
  }

  /** Returns a function that opens the checks of all slices that have been opened so far. */
  get eventChecks(): OpenEventChecks {
    const opening = this.#read('eventChecks').flatMap(({ eventChecks }) =>
      eventChecks ? [eventChecks] : [],
    );
    return (engine) => opening.flatMap((open) => open(engine));
  }

  get streams(): AnyStream[] {
    return this.#read('streams').flatMap(({ streams = [] }) => streams);
  }

  #read(part: CollectedPart): readonly OpenedSlice[] {
    this.#readParts.add(part);
    return this.#slices;
  }
}
