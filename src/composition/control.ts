import { isAbsolute } from 'node:path';
import {
  type ControlCommand,
  type ControlSocket,
  controlPathOf,
  openControlSocket,
} from '../kernel/control/index.ts';
import { copySqliteFile } from '../kernel/database/index.ts';
import { databaseOptionsOf, type Kernel } from './kernel.ts';

/** Minimum milliseconds between two reports of progress. */
const reportInterval = 500;

/**
 * Opens the socket for commands on the same machine. A server with PostgreSQL needs no socket, because PostgreSQL's own
 * tools make backups.
 * @returns `undefined` unless the database is a SQLite file that only this server opens
 */
export async function openControl(kernel: Kernel): Promise<ControlSocket | undefined> {
  const options = databaseOptionsOf(kernel);
  if (options.kind !== 'sqlite' || options.path === ':memory:' || kernel.sharesDatabase) return undefined;
  const { path } = options;
  return openControlSocket(controlPathOf(path), [copyDatabase(path, kernel)], kernel.namedLog('control'));
}

/** Returns the command that copies the database into a new file, as a step of `hearth backup`. */
function copyDatabase(source: string, { clock, namedLog }: Kernel): ControlCommand {
  return {
    name: 'copy-database',
    async run({ target }, report, signal) {
      if (typeof target !== 'string' || !isAbsolute(target))
        throw new Error('target: an absolute path is needed');
      const began = clock.monotonic();
      let reportedAt = began;
      await copySqliteFile(
        { source, target },
        (progress) => {
          if (clock.monotonic() - reportedAt < reportInterval) return;
          reportedAt = clock.monotonic();
          report(progress);
        },
        signal,
      );
      const durationMs = clock.monotonic() - began;
      namedLog('control').info({ target, durationMs }, 'The database was copied for a backup');
      return { durationMs };
    },
  };
}
