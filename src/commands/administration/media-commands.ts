import { systemClock } from '../../kernel/clock.ts';
import { CommandFailure } from '../failure.ts';
import { mediaOf, roomIdOf, userIdOf } from './identifiers.ts';
import { column, formatBytes, nameColumn, outputOf, writeDone, writeList } from './output.ts';
import { pagesOf } from './pages.ts';
import { Progress } from './progress.ts';
import { confirm } from './questions.ts';
import type { AdministrationFlags } from './server-choice.ts';
import { openSession, type Session } from './session.ts';
import { timeIn } from './times.ts';

type Row = Readonly<Record<string, unknown>>;

/** The options that select media: of a user, or of a room. */
export interface MediaSelection extends AdministrationFlags {
  readonly user?: string;
  readonly room?: string;
}

const userMedia = (userId: string) => `/_synapse/admin/v1/users/${encodeURIComponent(userId)}/media`;
/** Returns the path of an action on a file. @param action for example `quarantine/`; empty for the file itself */
const mediaPath = (action: string, uri: string) => {
  const { server, id } = mediaOf(uri);
  return `/_synapse/admin/v1/media/${action}${encodeURIComponent(server)}/${encodeURIComponent(id)}`;
};

/** `hearth media list`: lists the uploads of a user, or the media that events of a room link to. */
export async function listMedia(flags: MediaSelection): Promise<void> {
  requireOne(flags, []);
  const session = await openSession(flags);
  const output = outputOf(flags);
  if (flags.room !== undefined) {
    const roomId = await roomIdOf(flags.room, session);
    const found = await session.call('GET', `/_synapse/admin/v1/room/${encodeURIComponent(roomId)}/media`);
    const rows = (['local', 'remote'] as const).flatMap((origin) =>
      (found[origin] as string[]).map((uri) => ({ uri, origin })),
    );
    return writeList(
      output,
      [column('Media', 'uri'), column('Origin', 'origin')],
      [rows],
      'No media in this room.',
    );
  }
  const userId = userIdOf(flags.user!, session);
  const columns = [
    { title: 'Media', value: (row: Row) => `mxc://${session.serverName}/${String(row['media_id'])}` },
    { title: 'Size', value: (row: Row) => formatBytes(row['media_length']), isNumber: true },
    column('Type', 'media_type'),
    nameColumn('Name', 'upload_name'),
    column('Created', 'created_ts'),
    column('Last access', 'last_access_ts'),
    column('Quarantined by', 'quarantined_by'),
  ];
  const pages = pagesOf(session, userMedia(userId), {}, { rows: 'media', next: 'next_token' });
  await writeList(output, columns, pages, `${userId} has uploaded nothing.`);
}

/** `hearth media quarantine`: quarantines given files, or all files of a user or a room. */
export async function quarantineMedia(uris: readonly string[], flags: MediaSelection): Promise<void> {
  requireOne(flags, uris);
  const session = await openSession(flags);
  const output = outputOf(flags);
  const path =
    flags.user !== undefined
      ? `/_synapse/admin/v1/user/${encodeURIComponent(userIdOf(flags.user, session))}/media/quarantine`
      : flags.room !== undefined
        ? `/_synapse/admin/v1/room/${encodeURIComponent(await roomIdOf(flags.room, session))}/media/quarantine`
        : undefined;
  if (path !== undefined) {
    const answer = await session.call('POST', path);
    return writeDone(output, `Quarantined ${files(Number(answer['num_quarantined']))}.`, answer);
  }
  const paths = uris.map((uri) => mediaPath('quarantine/', uri));
  for (const each of paths) await session.call('POST', each);
  writeDone(output, `Quarantined ${files(uris.length)}.`, { quarantined: uris });
}

/** `hearth media unquarantine`: ends the quarantine of given files. */
export async function unquarantineMedia(uris: readonly string[], flags: AdministrationFlags): Promise<void> {
  const paths = uris.map((uri) => mediaPath('unquarantine/', uri));
  const session = await openSession(flags);
  for (const path of paths) await session.call('POST', path);
  writeDone(outputOf(flags), `Released ${files(uris.length)} from quarantine.`, {
    released: uris,
  });
}

/** The options of `hearth media delete`. */
export interface DeleteMediaFlags extends AdministrationFlags {
  readonly user?: string;
  readonly before?: string;
  /** With `before`: deletes only files of more bytes than this. */
  readonly largerThan?: number;
  readonly includeProfiles?: boolean;
}

/**
 * `hearth media delete`: deletes given files, all files of a user, or all files that were last used before a
 * time.
 */
export async function deleteMedia(uris: readonly string[], flags: DeleteMediaFlags): Promise<void> {
  const { user, before } = flags;
  if ([uris.length > 0, user !== undefined, before !== undefined].filter(Boolean).length !== 1) {
    throw new CommandFailure('give the addresses of files, or --user, or --before');
  }
  const paths = uris.map((uri) => mediaPath('', uri));
  const session = await openSession(flags);
  const output = outputOf(flags);
  if (before !== undefined) {
    const deleted = await deleteUnused(session, before, flags);
    return writeDone(output, `Deleted ${files(deleted.length)}.`, { deleted_media: deleted });
  }
  if (user !== undefined) {
    const deleted = await deleteOfUser(session, userIdOf(user, session), flags);
    return writeDone(output, `Deleted ${files(deleted.length)}.`, { deleted_media: deleted });
  }
  await confirm(`This deletes ${files(uris.length)} for everyone.`, flags);
  for (const path of paths) await session.call('DELETE', path);
  writeDone(output, `Deleted ${files(uris.length)}.`, { deleted_media: uris.map((uri) => mediaOf(uri).id) });
}

async function deleteUnused(session: Session, before: string, flags: DeleteMediaFlags): Promise<unknown[]> {
  const time = timeIn(before, 'past', systemClock.now());
  await confirm(
    `This deletes all files of this server that were last used before ${new Date(time).toISOString()}.`,
    flags,
  );
  const query = new URLSearchParams({
    before_ts: String(time),
    size_gt: String(flags.largerThan ?? 0),
    keep_profiles: String(flags.includeProfiles !== true),
  });
  const deleteSome = () => session.call('POST', `/_synapse/admin/v1/media/delete?${query}`, {});
  return deleteAll(deleteSome, undefined, flags);
}

/** Maximum number of files that one request deletes when all files of a user are deleted. */
const filesAtOnce = 100;

async function deleteOfUser(session: Session, userId: string, flags: DeleteMediaFlags): Promise<unknown[]> {
  const total = Number((await session.call('GET', `${userMedia(userId)}?limit=1`))['total']);
  await confirm(`This deletes ${files(total)} that ${userId} has uploaded.`, flags);
  const deleteSome = () => session.call('DELETE', `${userMedia(userId)}?limit=${filesAtOnce}`);
  return deleteAll(deleteSome, total, flags);
}

/**
 * Deletes files until none are left.
 * @param deleteSome sends one request, which may delete a part of the files only, and returns the response
 * @param total the number of all files, if it is known
 */
async function deleteAll(
  deleteSome: () => Promise<Row>,
  total: number | undefined,
  flags: DeleteMediaFlags,
): Promise<unknown[]> {
  const deleted: unknown[] = [];
  const progress = new Progress(flags.context.stderr);
  try {
    for (;;) {
      const answer = await deleteSome();
      const newlyDeleted = answer['deleted_media'] as unknown[];
      if (newlyDeleted.length === 0) return deleted;
      deleted.push(...newlyDeleted);
      const text = total === undefined ? files(deleted.length) : `${deleted.length} of ${total} files`;
      progress.show(deleted.length, total ?? 0, `${text} deleted`);
    }
  } finally {
    progress.end();
  }
}

/** `hearth media purge-remote`: deletes the copies of remote media that were last used before a time. */
export async function purgeRemoteMedia(
  flags: AdministrationFlags & { readonly before: string },
): Promise<void> {
  const time = timeIn(flags.before, 'past', systemClock.now());
  const session = await openSession(flags);
  const progress = new Progress(flags.context.stderr);
  progress.show(0, 0, 'deleting copies of remote media …');
  const answer = await session
    .call('POST', `/_synapse/admin/v1/purge_media_cache?before_ts=${time}`, {})
    .finally(() => progress.end());
  const text = `Deleted the copies of ${String(answer['deleted'])} remote files; they are fetched again when a user requests them.`;
  writeDone(outputOf(flags), text, answer);
}

const files = (count: number) => `${count} ${count === 1 ? 'file' : 'files'}`;

function requireOne({ user, room }: MediaSelection, uris: readonly string[]): void {
  const given = [user !== undefined, room !== undefined, uris.length > 0].filter(Boolean).length;
  if (given !== 1) throw new CommandFailure('give either --user, or --room, or addresses of files (mxc://…)');
}
