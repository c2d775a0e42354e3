import type { Sections } from '../config/index.ts';
import type { AnyWriter, AssignedNumbers, DatabaseCheck, Migration, TextIndex } from '../database/index.ts';
import type { AccountRows, DeviceRows } from './owned-tables.ts';
import type { RoomRows } from './room-rows.ts';

/**
 * The static half of a slice: its options, its tables, and the rows that are deleted with a room, an account or a
 * device. A slice is a folder below `src` with one public file (`index.ts`). Each slice with options or tables exports a
 * manifest from its `manifest.ts`; `src/slices.ts` lists them. The `open.ts` of a slice returns the parts that it adds to
 * a running server.
 */
export interface SliceManifest {
  /** The folder of the slice. */
  readonly name: string;
  /** Sections of options, by name. Code reads the values of a section under this name. */
  readonly options?: Sections;
  /** Applied in this order; independent of the tables of other slices. */
  readonly migrations?: readonly Migration[];
  /** Migrations of a database that has only the data store `state` (option `databases`). */
  readonly stateMigrations?: readonly Migration[];
  readonly roomRows?: RoomRows;
  readonly accountRows?: AccountRows;
  readonly deviceRows?: DeviceRows;
  /** The full-text indexes that the migrations make. */
  readonly textIndexes?: readonly TextIndex[];
  /** Checks of the consistency of the slice's tables, for `hearth database check`. */
  readonly checks?: readonly DatabaseCheck[];
  /** Columns with numbers that the server assigns in memory, and the names of their bounds on disk. */
  readonly assignedNumbers?: readonly AssignedNumbers[];
  /** Changes to a database that was restored from a backup. */
  readonly afterDatabaseRestore?: AfterRestore;
}

/**
 * Changes to a database that was restored from a backup: clients and other servers have seen events and
 * numbers from after the backup.
 */
export interface AfterRestore {
  /** Sequences whose numbers clients or other servers have seen: after a restore, they continue far ahead. */
  readonly sequences?: readonly string[];
  /** Further changes. */
  change?(writer: AnyWriter): Promise<void>;
}

/** The sections of options of several manifests, in one object. `Manifest` is the union of their types. */
export type OptionsOf<Manifest> = Intersection<
  Manifest extends { readonly options: infer Options extends Sections } ? Options : never
>;

/** The intersection of the members of a union. TypeScript infers it where a parameter has to accept each member. */
type Intersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  member: infer All extends Sections,
) => void
  ? All
  : never;

/** Returns the sections of options of all slices, in the order of the slices. */
export const optionsOf = <Manifest extends SliceManifest>(slices: readonly Manifest[]): OptionsOf<Manifest> =>
  Object.assign({}, ...slices.map(({ options }) => options));

/** Returns the schema migrations of all slices, in the order in which they are applied. */
export const migrationsOf = (slices: readonly SliceManifest[]): Migration[] =>
  slices.flatMap(({ migrations = [] }) => migrations);
