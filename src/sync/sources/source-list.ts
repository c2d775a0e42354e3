import type {
  AccountDataSection,
  DeviceQueue,
  DeviceSection,
  EphemeralSection,
  Extension,
  PresenceSection,
  RoomCounts,
  SyncSource,
} from '../../sync-contract/index.ts';

/** The bit that marks changes of timelines in feeds; timelines are not a source in the list. */
export const timelineBit = 1;

/** A section with the bit of its source. */
export interface SourceSection<S> {
  readonly bit: number;
  readonly section: S;
}

/** Maximum number of sources: the 31 bits of a positive integer, without `timelineBit`. */
const maxSources = 30;

/**
 * The sources of syncs by the sections that they fill, in the order of the list. Each source has a bit, which marks its
 * changes in feeds.
 */
export class SourceList {
  readonly all: readonly { readonly bit: number; readonly source: SyncSource }[];
  readonly ephemeral: readonly SourceSection<EphemeralSection>[];
  readonly accountData: readonly SourceSection<AccountDataSection>[];
  readonly presence: readonly SourceSection<PresenceSection>[];
  readonly device: readonly SourceSection<DeviceSection>[];
  readonly roomCounts: readonly SourceSection<RoomCounts>[];
  readonly extensions: readonly SourceSection<Extension>[];
  readonly deviceQueue: DeviceQueue | undefined;
  /** Bits of everything that may change in a room. */
  readonly everyBit: number;
  readonly ephemeralBits: number;
  readonly accountDataBits: number;
  /** Bits of account data that clients set. */
  readonly clientDataBits: number;
  readonly presenceBits: number;
  /** Bits of the room data that an extension of sliding sync returns, by the name of the extension. */
  readonly extensionBits: ReadonlyMap<string, number>;

  /** @throws Error when there are too many sources, two queues, or two sources with the same name */
  constructor(sources: readonly SyncSource[]) {
    if (sources.length > maxSources) throw new Error(`there are more than ${maxSources} sources of syncs`);
    if (new Set(sources.map(({ name }) => name)).size < sources.length) {
      throw new Error('two sources of syncs have the same name');
    }
    this.all = sources.map((source, index) => ({ bit: 2 << index, source }));
    this.ephemeral = this.#sectionsOf(({ ephemeral }) => ephemeral);
    this.accountData = this.#sectionsOf(({ accountData }) => accountData);
    this.presence = this.#sectionsOf(({ presence }) => presence);
    this.device = this.#sectionsOf(({ device }) => device);
    this.roomCounts = this.#sectionsOf(({ roomCounts }) => roomCounts);
    this.extensions = this.#sectionsOf(({ extension }) => extension);
    const [queue, ...furtherQueues] = this.#sectionsOf(({ deviceQueue }) => deviceQueue);
    if (furtherQueues.length > 0) throw new Error('two sources of syncs have a queue of messages to devices');
    this.deviceQueue = queue?.section;
    this.everyBit = timelineBit | bitsOf(this.all);
    this.ephemeralBits = bitsOf(this.ephemeral);
    this.accountDataBits = bitsOf(this.accountData);
    this.clientDataBits = bitsOf(this.accountData.filter(({ section }) => section.isSetByClients));
    this.presenceBits = bitsOf(this.presence);
    this.extensionBits = new Map([
      ['account_data', this.accountDataBits],
      ...this.ephemeral.map(({ bit, section }) => [section.extension.name, bit] as const),
    ]);
  }

  #sectionsOf<S>(sectionOf: (source: SyncSource) => S | undefined): SourceSection<S>[] {
    return this.all.flatMap(({ bit, source }) => {
      const section = sectionOf(source);
      return section === undefined ? [] : [{ bit, section }];
    });
  }
}

/** Combines the bits of sources. */
export const bitsOf = (sections: readonly { readonly bit: number }[]) =>
  sections.reduce((bits, { bit }) => bits | bit, 0);
