import type { Registration } from './registration.ts';

/** A registration and where it comes from. */
export interface RegistrationFile {
  readonly index: number;
  readonly file: string;
  readonly registration: Registration;
}

/** A problem of one of the files. */
export interface RegistrationProblem {
  /** Index of the file in the list. */
  readonly index: number;
  /** Begins with the place: file, line and column. */
  readonly message: string;
}
