import { statSync } from 'node:fs';
import type { LoadedConfiguration } from '../../../configuration/load.ts';
import {
  Findings,
  formatProblem,
  type Problem,
  parseYaml,
  readSourceFiles,
  type SourceNode,
} from '../../../kernel/config/index.ts';
import { ownCommand } from '../../../kernel/process/index.ts';
import { logsToConsole } from '../../logging.ts';
import { error, type Finding, ok, warning } from '../finding.ts';

/**
 * Reports the problems of the configuration and of the file `log_config`, and files with secrets that other users of this
 * machine can read.
 */
export function checkConfigurationFiles(paths: readonly string[], loaded: LoadedConfiguration): Finding[] {
  const problems = [
    ...loaded.errors.map((problem) => error('configuration-error', formatProblem(problem), fixOf(problem))),
    ...loaded.warnings.map((problem) =>
      warning('configuration-warning', formatProblem(problem), fixOf(problem)),
    ),
  ];
  const valid = loaded.errors.length === 0 ? [ok('configuration', `${paths.join(', ')}: valid`)] : [];
  const logs = loaded.errors.length === 0 ? logFindings(loaded) : [];
  return [...valid, ...problems, ...logs, ...readableByOthers(paths)];
}

/** Reports a file of `log_config` that prevents the server from starting. */
function logFindings({ values }: LoadedConfiguration): Finding[] {
  try {
    logsToConsole(values);
    return [];
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const file = values.observability.log_config;
    return [
      error(
        'log-config',
        `The server does not start: ${text}`,
        `ls -l ${file}; docs/configuration/logging.md shows its form`,
      ),
    ];
  }
}

function fixOf({ path, at, message }: Problem): string {
  if (message.includes('permission is denied'))
    return 'run this command as the user of the server, or let that user read the file; ls -l shows its owner';
  if (path === '' && message.endsWith('does not exist'))
    return `give the path with -c; a new configuration: ${ownCommand} init -n SERVER_NAME -d DIRECTORY`;
  const place = at === undefined ? '' : `change line ${at.line} of ${at.file}; `;
  const option = path.replace(/\[\d+\]/g, '[]');
  return option === ''
    ? `${place}${ownCommand} config docs lists all options`
    : `${place}to see what is allowed: ${ownCommand} config explain '${option}'`;
}

function readableByOthers(paths: readonly string[]): Finding[] {
  const { sources } = readSourceFiles(paths, new Findings());
  return sources
    .filter(({ file, text }) => {
      const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
      return (mode & 0o004) !== 0 && hasSecret(parseYaml(file, text, new Findings()));
    })
    .map(({ file }) =>
      warning(
        'configuration-permissions',
        `${file} contains secrets, and every user of this machine can read it.`,
        `chmod o-rwx ${file}`,
      ),
    );
}

/**
 * Whether an option whose name says that it is a secret or password has a text or a number. Options whose names end in
 * `_path` do not count, because they name files.
 */
function hasSecret(node: SourceNode | undefined): boolean {
  if (node?.kind === 'list') return node.items.some(hasSecret);
  if (node?.kind !== 'map') return false;
  return [...node.entries].some(
    ([name, entry]) =>
      (/secret|password|(^|_)pass$/.test(name) && !name.endsWith('_path') && isText(entry.node)) ||
      hasSecret(entry.node),
  );
}

const isText = (node: SourceNode): boolean =>
  node.kind === 'scalar' && node.value !== null && node.value !== '' && typeof node.value !== 'boolean';
