import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { InitOptions } from './init.ts';
import type { RegisterUserOptions } from './register-user.ts';
import type { ServeOptions } from './serve.ts';

/** The program with all its commands. What a command needs is loaded when it runs. */
export function createProgram(): Command {
  const program = new Command('hearth')
    .description('A federated messaging homeserver that speaks the Matrix protocol.')
    .version(version(), '-V, --version')
    .showHelpAfterError('(hearth --help says more)')
    .addHelpText(
      'after',
      '\nTo begin: hearth serve, which makes a configuration in ./data when there is none.',
    );
  addServe(program);
  addInit(program);
  addConfig(program);
  addRegisterUser(program);
  return program;
}

function addServe(program: Command): void {
  withConfig(program.command('serve'))
    .description('Run the homeserver.')
    .option(
      '-D, --daemonize',
      'detach from the terminal and run in the background; logs go to homeserver.log',
    )
    .option('--print-pidfile', 'print the path of the pid file before going to the background')
    .option('--manhole <port>', 'open a debugging console on this port of the loopback address', parsePort)
    .addHelpText(
      'after',
      `
Without -c the configuration is data/homeserver.yaml, which is made for the name localhost when it does not exist.
SIGTERM and SIGINT stop the server gracefully, SIGHUP reads the configuration and certificates again.`,
    )
    .action(async (options: ServeOptions) => (await import('./serve.ts')).serve(options));
}

function addInit(program: Command): void {
  program
    .command('init')
    .description('Write a configuration with fresh secrets and a signing key. Never overwrites anything.')
    .requiredOption(
      '-n, --server-name <name>',
      'the name of the server, the part behind the colon in user ids',
    )
    .option('-d, --directory <path>', 'where to put configuration and data', 'data')
    .action(async (options: InitOptions) => (await import('./init.ts')).init(options));
}

function addRegisterUser(program: Command): void {
  withConfig(program.command('register-user'))
    .description('Make an account on a running server, by its registration_shared_secret.')
    .argument('[url]', 'where the server is; by default as the configuration says')
    .option('-u, --user <name>', 'the name of the user, without @ and server; asked for when absent')
    .option('--password-file <path>', 'a file that holds the password; - reads it from standard input')
    .option('-a, --admin', 'make the user a server administrator')
    .option('-t, --user-type <type>', 'the type of the user, for instance bot or support')
    .option('--secret-file <path>', 'a file that holds the shared secret, instead of a configuration')
    .addHelpText('after', '\nWithout --password-file the password is asked for, or read from a pipe.')
    .action(async (url: string | undefined, options: RegisterUserOptions) =>
      (await import('./register-user.ts')).registerUser(url, options),
    );
}

function addConfig(program: Command): void {
  const config = program.command('config').description('Check and explain configurations.');
  const surroundings = { stdout: process.stdout, stderr: process.stderr, environment: process.env };
  const load = () => import('./config.ts');
  config
    .command('check')
    .description('Report everything that is wrong with a configuration.')
    .argument('<path...>', 'files and directories, later ones win')
    .option('--strict', 'take warnings for errors')
    .action(async (files: string[], { strict = false }: { strict?: boolean }) => {
      process.exitCode = (await load()).checkConfiguration({ files, strict }, surroundings);
    });
  config
    .command('show')
    .description('Print the configuration in force, defaults included and secrets masked.')
    .argument('<path...>', 'files and directories, later ones win')
    .option('--json', 'print JSON instead of YAML')
    .action(async (files: string[], { json = false }: { json?: boolean }) => {
      process.exitCode = (await load()).showConfiguration({ files, json }, surroundings);
    });
  config
    .command('explain')
    .description('Print what an option does.')
    .argument('<option>', 'its path, for instance caches.global_factor')
    .action(async (path: string) => {
      process.exitCode = (await load()).explainConfiguration(path, surroundings);
    });
  config
    .command('docs')
    .description('Print the reference of all options in Markdown.')
    .action(async () => {
      process.exitCode = (await load()).printConfigurationReference(surroundings);
    });
  config
    .command('schema')
    .description('Print the JSON Schema of the configuration.')
    .action(async () => {
      process.exitCode = (await load()).printConfigurationSchema(surroundings);
    });
}

function withConfig(command: Command): Command {
  const collect = (path: string, paths: string[] = []) => [...paths, path];
  return command
    .option(
      '-c, --config <path>',
      'configuration file or directory; may be repeated, later ones win',
      collect,
    )
    .addOption(new Option('--config-path <path>').argParser(collect).hideHelp());
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('It is not a port.');
  return port;
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
