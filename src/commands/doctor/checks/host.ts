import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MiB, maxCacheBytes } from '../../../kernel/caches/index.ts';
import { databaseOptions, dataStoreEntries } from '../../../kernel/database/index.ts';
import { ownCommand } from '../../../kernel/process/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, ok, warning } from '../finding.ts';

const GiB = 1024 * MiB;

/** Bytes of free space below which the server may soon be unable to write. */
const littleSpace = 2 * GiB;

/** Bytes of free space below which the disk counts as full. */
const noSpace = 256 * MiB;

/** Share of free inodes below which new files may soon fail. */
const fewInodes = 0.02;

/** Bytes that the server needs beside its caches when many users are active. */
const memoryBesideCaches = 250 * MiB;

/** Number of files and connections that a server with federation may need to have open at once. */
const enoughFiles = 4_096;

/** Checks disk space, the right to write to directories, memory, and the limit of open files of this machine. */
export async function checkHost(examination: Examination): Promise<readonly Finding[]> {
  return [...(await disks(examination)), ...memory(examination), ...openFiles(examination)];
}

async function disks({ configuration, machine }: Examination): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [label, directory] of directoriesOf(configuration)) {
    findings.push(...writeFindings(label, directory));
    const { free, total, freeInodes } = await machine.space(existingParent(directory));
    const text = `${label} (${directory}): ${size(free)} of ${size(total)} are free`;
    const fix = `du -xh --max-depth=2 ${directory} | sort -h; then delete or move files, or enlarge the disk. Copies of remote media: ${ownCommand} media purge-remote --before 30d`;
    if (free < noSpace)
      findings.push(error('disk-full', `${text}. Without space the server rejects messages.`, fix));
    else if (free < littleSpace) findings.push(warning('disk-space', `${text}.`, fix));
    else findings.push(ok('disk-space', `${text}.`));
    if (freeInodes < fewInodes) {
      findings.push(
        warning(
          'disk-inodes',
          `${label} (${directory}): less than 2 % of the inodes are free.`,
          `df -i ${directory}`,
        ),
      );
    }
  }
  return findings;
}

/** Reports a directory in which the user of this command may not write. */
function writeFindings(label: string, directory: string): Finding[] {
  const existing = existingParent(directory);
  try {
    accessSync(existing, constants.W_OK);
    return [];
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    const text = `${label} (${directory}): the user of this command may not write in ${existing} (${reason}).`;
    const fix = `run this command as the user of the server. If it reports the same: ls -ld ${existing}, then chown it to that user, or set ReadWritePaths=${existing} in the systemd unit`;
    return [error('directory-not-writable', text, fix)];
  }
}

/** Returns the directories that this server writes to. The directories of a PostgreSQL server are not among them. */
function directoriesOf({ database, media }: Examination['configuration']): [label: string, path: string][] {
  const { main, state } = dataStoreEntries(database);
  const files = [...new Set([main, state])].flatMap((entry): [string, string][] => {
    const options = databaseOptions(entry);
    return options.kind === 'sqlite' ? [['Database', dirname(resolve(options.path))]] : [];
  });
  return [...files, ['Media', resolve(media.media_store_path)]];
}

function existingParent(path: string): string {
  return existsSync(path) || path === dirname(path) ? path : existingParent(dirname(path));
}

function memory({ configuration, machine }: Examination): Finding[] {
  const total = machine.memory();
  const { global_factor: factor } = configuration.caches.caches;
  const needed = maxCacheBytes * factor + memoryBesideCaches;
  if (total >= needed) return [ok('memory', `The server may use ${size(total)} of memory.`)];
  const fitting = Math.max(0.1, Math.floor(((total - memoryBesideCaches) / maxCacheBytes) * 10) / 10);
  return [
    warning(
      'memory',
      `The server may use ${size(total)} of memory. With caches.global_factor ${factor} it may need ${size(needed)}, and is killed when there is no more.`,
      `caches: { global_factor: ${fitting} }`,
    ),
  ];
}

function openFiles({ configuration, machine }: Examination): Finding[] {
  const { soft_file_limit: softLimit, pid_file: pidFile } = configuration.process;
  const pid = runningPid(pidFile);
  const limit = machine.maxOpenFiles(pid) ?? machine.maxOpenFiles();
  if (limit === undefined) return [];
  const where = pid === undefined ? 'this shell' : `the running server (process ${pid})`;
  const fix =
    'LimitNOFILE=65536 in the [Service] section of the systemd unit (systemctl edit hearth), or ulimit -n 65536';
  if (softLimit > limit) {
    return [
      error(
        'open-files',
        `soft_file_limit is ${softLimit}, and ${where} may have ${limit} open files at most.`,
        fix,
      ),
    ];
  }
  if (limit >= enoughFiles) return [ok('open-files', `The limit of open files of ${where} is ${limit}.`)];
  return [
    warning(
      'open-files',
      `The limit of open files of ${where} is ${limit}: each connection of a client or server takes one.`,
      fix,
    ),
  ];
}

function runningPid(file: string | null): number | undefined {
  try {
    const pid = file === null ? Number.NaN : Number(readFileSync(file, 'utf8').trim());
    return Number.isInteger(pid) && existsSync(`/proc/${pid}`) ? pid : undefined;
  } catch {
    return undefined;
  }
}

const size = (bytes: number) =>
  bytes >= GiB ? `${(bytes / GiB).toFixed(1)} GiB` : `${Math.round(bytes / MiB)} MiB`;
