import { readFileSync } from 'node:fs';
import { CommandFailure } from '../failure.ts';
import { firstLine } from '../first-line.ts';
import { printable } from '../printable.ts';
import { TerminalPrompt } from '../terminal.ts';

/**
 * Asks whether to do something that cannot be undone; `--yes` answers in advance.
 * @param action a sentence that says what would happen
 * @throws CommandFailure when the answer is not yes, or when there is neither a terminal to ask at nor `--yes`
 */
export async function confirm(action: string, { yes }: { readonly yes?: boolean }): Promise<void> {
  if (yes) return;
  const description = printable(action);
  if (!process.stdin.isTTY) throw new CommandFailure(`${description} Nothing was done: confirm with --yes`);
  const prompt = new TerminalPrompt('confirm with --yes');
  try {
    const answer = await prompt.ask(`${description} Continue? [y/N] `);
    if (!/^y(es)?$/i.test(answer)) throw new CommandFailure('nothing was done');
  } finally {
    prompt.close();
  }
}

/** Maximum number of attempts to enter the same password twice. */
const maxAttempts = 3;

/** Reads a new password from a file, from a pipe, or twice from the terminal. @throws CommandFailure when it is empty, or the entries differ */
export async function newPassword(file: string | undefined): Promise<string> {
  const password =
    file !== undefined && file !== '-' ? firstLine(readFileSync(file, 'utf8')) : await askTwice();
  if (password === '') throw new CommandFailure('the password is empty');
  return password;
}

async function askTwice(): Promise<string> {
  const prompt = new TerminalPrompt('give the password with --password-file');
  try {
    for (let attempt = 1; ; attempt++) {
      const password = await prompt.askHidden('New password: ');
      if (!process.stdin.isTTY) return password;
      if ((await prompt.askHidden('Repeat password: ')) === password) return password;
      if (attempt === maxAttempts) throw new CommandFailure('the passwords differ');
      process.stderr.write('The passwords differ. Try again.\n');
    }
  } finally {
    prompt.close();
  }
}
