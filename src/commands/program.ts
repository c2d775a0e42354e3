import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { RestoreOptions } from './backup/restore.ts';
import type { ConfigFlags } from './configuration-files.ts';
import type { InitOptions } from './init.ts';
import type { MoveMediaFlags } from './move-media.ts';
import type { RegisterUserOptions } from './register-user.ts';
import type { ServeOptions } from './serve.ts';

/** Creates the program with all its commands. The modules of a command are loaded when it runs. */
export function createProgram(): Command {
  const program = new Command('hearth')
    .description('A federated messaging homeserver that speaks the Matrix protocol.')
    .version(version(), '-V, --version')
    .showHelpAfterError('(see hearth --help)')
    .addHelpText(
      'after',
      '\nTo start: hearth serve, which creates a configuration in ./data if there is none.',
    );
  addServe(program);
  addInit(program);
  addConfig(program);
  addRegisterUser(program);
  addBackup(program);
  addRestore(program);
  addMail(program);
  addMedia(program);
  return program;
}

/** Adds a command whose errors name its own help. */
function addCommand(program: Command, name: string): Command {
  const parents = program.parent ? `${program.name()} ` : '';
  return program.command(name).showHelpAfterError(`(see hearth ${parents}${name} --help)`);
}

function addServe(program: Command): void {
  withConfig(addCommand(program, 'serve'))
    .description('Run the homeserver.')
    .option(
      '-D, --daemonize',
      'detach from the terminal and run in the background; logs go to homeserver.log unless log_config sends them elsewhere',
    )
    .option('--print-pidfile', 'print the path of the pid file before going to the background')
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

function addMedia(program: Command): void {
  const media = addCommand(program, 'media').description('Manage stored media.');
  withConfig(addCommand(media, 'move'))
    .description('Store the media of this machine at the storage providers, and delete it here.')
    .option('--keep', 'leave the files on this machine, too')
    .addHelpText(
      'after',
      `
The server may run. Each file is read back and compared before it is deleted here. After an interruption, call the command
again: it continues where it was.`,
    )
    .action(async (options: MoveMediaFlags) =>
      (await import('./move-media.ts')).moveMediaToProviders(options),
    );
}

function addBackup(program: Command): void {
  withConfig(addCommand(program, 'backup'))
    .description('Write the database, the media, the configuration and the keys to a new directory.')
    .argument('<directory>', 'an empty or new directory; it will hold all secrets of the server')
    .addHelpText(
      'after',
      `
The server may run. It copies a SQLite database itself, in small steps. For PostgreSQL, pg_dump must be installed.`,
    )
    .action(async (directory: string, options: ConfigFlags) =>
      (await import('./backup/backup.ts')).backup(directory, options),
    );
}

function addRestore(program: Command): void {
  withConfig(addCommand(program, 'restore'))
    .description('Put a backup back. The server must be stopped.')
    .argument('[directory]', 'the directory of a backup')
    .option('--overwrite', 'replace an existing database and configuration; they are kept under other names')
    .option(
      '--database-only',
      'prepare a database that was restored with other tools, so that clients can go on; needs no directory',
    )
    .addHelpText(
      'after',
      `
Without -c the files of the configuration and the keys are put where they were. With -c they are not, and that
configuration says where the database and the media go. A PostgreSQL database must be empty.`,
    )
    .action(async (directory: string | undefined, options: RestoreOptions) =>
      (await import('./backup/restore.ts')).restore(directory, options),
    );
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

function addConfig(program: Command): void {
  const config = addCommand(program, 'config').description('Check and explain configurations.');
  const context = { stdout: process.stdout, stderr: process.stderr, environment: process.env };
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
