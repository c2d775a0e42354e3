import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { ownCommand } from '../kernel/process/index.ts';
import { addAdministration } from './administration/program-parts.ts';
import type { RestoreOptions } from './backup/restore.ts';
import type { StoreFlags } from './backup/store/backup-to-store.ts';
import { type CommandContext, processContext } from './command-context.ts';
import type { ConfigFlags } from './configuration-files.ts';
import type { CheckFlags } from './database/check.ts';
import type { MoveFlags } from './database/move.ts';
import type { SizeFlags } from './database/size.ts';
import type { DoctorFlags } from './doctor/doctor.ts';
import type { InitOptions } from './init.ts';
import type { MoveMediaFlags } from './move-media.ts';
import type { RegisterUserOptions } from './register-user.ts';
import type { ServeOptions } from './serve.ts';

/** Creates the program with all its commands. The modules of a command are loaded when it runs. */
export function createProgram(context: CommandContext = processContext): Command {
  const program = new Command('hearth')
    .description('A federated messaging homeserver that speaks the Matrix protocol.')
    .version(version(), '-V, --version')
    .showHelpAfterError(`(see ${ownCommand} --help)`)
    .addHelpText(
      'after',
      `\nTo start: ${ownCommand} serve, which creates a configuration in ./data if there is none.`,
    );
  addServe(program);
  addInit(program);
  addConfig(program, context);
  addRegisterUser(program);
  addBackup(program);
  addRestore(program);
  addDatabase(program);
  addDoctor(program);
  addMail(program);
  addAdministration(program, addMedia(program), { addCommand, withConfig, context });
  return program;
}

/** Adds a command whose errors name its own help. */
function addCommand(program: Command, name: string): Command {
  const parents = program.parent ? `${program.name()} ` : '';
  return program.command(name).showHelpAfterError(`(see ${ownCommand} ${parents}${name} --help)`);
}

function addServe(program: Command): void {
  withConfig(addCommand(program, 'serve'))
    .description('Run the homeserver.')
    .option(
      '-D, --daemonize',
      'detach from the terminal and run in the background; logs go to homeserver.log unless log_config sends them elsewhere',
    )
    .option('--print-pidfile', 'print the path of the pid file before detaching from the terminal')
    .option('--manhole <port>', 'open a debugging console on this port of the loopback address', parsePort)
    .addHelpText(
      'after',
      `
Without -c the configuration is data/homeserver.yaml, which is created for the server name localhost if it does not exist.
SIGTERM and SIGINT stop the server gracefully, SIGHUP reloads the configuration and the certificates.`,
    )
    .action(async (options: ServeOptions) => (await import('./serve.ts')).serve(options));
}

function addInit(program: Command): void {
  addCommand(program, 'init')
    .description('Create a configuration with new secrets and a signing key. Never overwrites files.')
    .requiredOption(
      '-n, --server-name <name>',
      'the name of the server, the part after the colon in user ids',
    )
    .option('-d, --directory <path>', 'the directory for the configuration and the data', 'data')
    .action(async (options: InitOptions) => (await import('./init.ts')).init(options));
}

function addRegisterUser(program: Command): void {
  withConfig(addCommand(program, 'register-user'))
    .description('Register an account on a running server, using its registration_shared_secret.')
    .argument('[url]', 'the URL of the server; by default taken from the configuration')
    .option('-u, --user <name>', 'the name of the user, without @ and server; asked for if absent')
    .option('--password-file <path>', 'a file with the password; - reads it from standard input')
    .option('-a, --admin', 'make the user a server administrator')
    .option('-t, --user-type <type>', 'the type of the user, for instance bot or support')
    .option('--secret-file <path>', 'a file with the shared secret, used instead of a configuration')
    .addHelpText('after', '\nWithout --password-file the password is asked for, or read from a pipe.')
    .action(async (url: string | undefined, options: RegisterUserOptions) =>
      (await import('./register-user.ts')).registerUser(url, options),
    );
}

function addMedia(program: Command): Command {
  const media = addCommand(program, 'media').description('Manage stored media.');
  withConfig(addCommand(media, 'move'))
    .description('Store the media of this machine at the storage providers, and delete it here.')
    .option('--keep', 'do not delete the files on this machine')
    .addHelpText(
      'after',
      `
The server may run. Each file is read back and compared before it is deleted here. After an interruption, call the command
again: it continues where it was.`,
    )
    .action(async (options: MoveMediaFlags) =>
      (await import('./move-media.ts')).moveMediaToProviders(options),
    );
  return media;
}

function addBackup(program: Command): void {
  withConfig(addCommand(program, 'backup'))
    .description('Write the database, the media, the configuration and the keys to a directory or a store.')
    .argument('[directory]', 'an empty or new directory; it will hold all secrets of the server')
    .option(
      '--store <address>',
      'add the backup to a store, to which only changed pieces are sent: a directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME',
    )
    .option(
      '--keep <number>',
      'keep this number of the newest backups in the store, and delete the others',
      parseCount,
    )
    .option(
      '--verify',
      'also read the pieces of the last backup in the store, and send missing and damaged pieces again',
    )
    .addHelpText(
      'after',
      `
The server may run. It copies a SQLite database itself, in small steps. For PostgreSQL, pg_dump must be installed. The keys for
S3-compatible storage are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
    )
    .action(async (directory: string | undefined, options: ConfigFlags & Partial<StoreFlags>) =>
      (await import('./backup/backup.ts')).backup(directory, options),
    );
}

function addRestore(program: Command): void {
  withConfig(addCommand(program, 'restore'))
    .description('Restore a backup. The server must be stopped.')
    .argument('[directory]', 'the directory of a backup')
    .option('--store <address>', 'fetch the backup from a store into the directory first')
    .option('--at <name>', 'the name of the backup in the store; by default the newest')
    .option('--overwrite', 'replace an existing database and configuration; they are kept under other names')
    .option(
      '--database-only',
      'prepare a database that was restored with other tools, so that clients can continue; needs no directory',
    )
    .addHelpText(
      'after',
      `
Without -c, the configuration and the keys are restored to their original paths. With -c they are not restored, and the
given configuration determines the paths of the database and the media. A PostgreSQL database must be empty.`,
    )
    .action(async (directory: string | undefined, options: RestoreOptions) =>
      (await import('./backup/restore.ts')).restore(directory, options),
    );
}

function addDatabase(program: Command): void {
  const database = addCommand(program, 'database').description('Move, check, measure and compact databases.');
  withConfig(addCommand(database, 'move'))
    .description('Move everything to another database: from SQLite to PostgreSQL, or back.')
    .requiredOption('--to <file>', 'a configuration file with the option "database" for the new database')
    .option('--overwrite', 'replace the contents that an earlier move has left in the new database')
    .addHelpText(
      'after',
      `
Call it first while the server runs: it copies everything. Then stop the server and call it again: it compares all rows,
copies the changes since the first call, and marks the old database as moved, so that no server starts on it. The command
may be interrupted at any time and called again.`,
    )
    .action(async (options: MoveFlags) => (await import('./database/move.ts')).moveToDatabase(options));
  withConfig(addCommand(database, 'split'))
    .description('Move the state groups to a database of their own (option "databases", PostgreSQL only).')
    .addHelpText(
      'after',
      `
Give the new configuration, in which "databases" assigns the data store main to the current database, and the data store
state to an empty database. Call it first while the server runs, then again when it is stopped, and start the server with
the new configuration. The command may be interrupted at any time and called again.`,
    )
    .action(async (options: ConfigFlags) =>
      (await import('./database/split.ts')).splitConfiguredDatabase(options),
    );
  withConfig(addCommand(database, 'join'))
    .description(
      'Copy the state groups back into the database of the data store main. The server must be stopped.',
    )
    .addHelpText(
      'after',
      `
Give the configuration with two databases. The command may be interrupted at any time and called again. Afterwards name only
the database of the data store main in the configuration, with the option "database".`,
    )
    .action(async (options: ConfigFlags) =>
      (await import('./database/join.ts')).joinConfiguredDatabases(options),
    );
  withConfig(addCommand(database, 'check'))
    .description('Report inconsistencies of the database.')
    .option('--mend', 'repair inconsistencies where that loses no data; the server must be stopped')
    .option('--json', 'print JSON')
    .action(async (options: CheckFlags) =>
      (await import('./database/check.ts')).checkConfiguredDatabase(options),
    );
  withConfig(addCommand(database, 'size'))
    .description('Report the disk space of each table, and the rooms whose events take the most space.')
    .option('--json', 'print JSON')
    .action(async (options: SizeFlags) => (await import('./database/size.ts')).measureDatabase(options));
  withConfig(addCommand(database, 'compact'))
    .description('Release the disk space of deleted rows to the file system. The server must be stopped.')
    .addHelpText(
      'after',
      `
A running server does the same in small steps once an hour. SQLite files of early versions need this command once; it writes
the file again, for which the disk needs twice its size. The command may be interrupted at any time and called again.`,
    )
    .action(async (options: ConfigFlags) => (await import('./database/compact.ts')).compactDatabase(options));
}

function addDoctor(program: Command): void {
  withConfig(addCommand(program, 'doctor'))
    .description(
      'Check the configuration, database, keys, names, certificates, reachability, machine and backups.',
    )
    .option('--json', 'print the findings as JSON, for scripts')
    .option('--strict', 'treat warnings as errors')
    .option('--backup-mark <path>', 'a file or directory that your own tool changes with each backup')
    .addHelpText(
      'after',
      `
Changes nothing, and works while the server runs and while it does not. Each problem is printed with its solution. Exits
with 1 if there are errors.`,
    )
    .action(async (options: DoctorFlags) => (await import('./doctor/doctor.ts')).doctor(options));
}

function addMail(program: Command): void {
  const mail = addCommand(program, 'mail').description('Check whether mail can be sent.');
  withConfig(addCommand(mail, 'test'))
    .description('Send a test mail, and explain what went wrong if the mail server does not accept it.')
    .argument('<address>', 'the mail address of the recipient')
    .action(async (address: string, options: ConfigFlags) =>
      (await import('./mail.ts')).testMail(address, options),
    );
}

function addConfig(program: Command, context: CommandContext): void {
  const config = addCommand(program, 'config').description('Check and explain configurations.');
  const load = () => import('./config.ts');
  addCommand(config, 'check')
    .description('Report all problems of a configuration.')
    .argument('<path...>', 'files and directories; later ones override earlier ones')
    .option('--strict', 'treat warnings as errors')
    .action(async (files: string[], { strict = false }: { strict?: boolean }) => {
      process.exitCode = (await load()).checkConfiguration({ files, strict }, context);
    });
  addCommand(config, 'show')
    .description('Print the effective configuration, with defaults and with masked secrets.')
    .argument('<path...>', 'files and directories; later ones override earlier ones')
    .option('--json', 'print JSON instead of YAML')
    .action(async (files: string[], { json = false }: { json?: boolean }) => {
      process.exitCode = (await load()).showConfiguration({ files, json }, context);
    });
  addCommand(config, 'explain')
    .description('Print what an option does.')
    .argument('<option>', 'the path of the option, for instance caches.global_factor')
    .action(async (path: string) => {
      process.exitCode = (await load()).explainConfiguration(path, context);
    });
  addCommand(config, 'docs')
    .description('Print the reference of all options in Markdown.')
    .action(async () => {
      process.exitCode = (await load()).printConfigurationReference(context);
    });
  addCommand(config, 'schema')
    .description('Print the JSON Schema of the configuration.')
    .action(async () => {
      process.exitCode = (await load()).printConfigurationSchema(context);
    });
}

function withConfig(command: Command): Command {
  const collect = (path: string, paths: string[] = []) => [...paths, path];
  return command
    .option(
      '-c, --config <path>',
      'configuration file or directory; may be repeated, later ones override earlier ones',
      collect,
    )
    .addOption(new Option('--config-path <path>').argParser(collect).hideHelp());
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('Not a number of at least 1.');
  return count;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('Not a port number.');
  return port;
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
