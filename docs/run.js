// Run buttons for the samples, by a script of the site, which has the book in a folder beside the package.
import(new URL(`${path_to_root}../run/guide.js`, location.href));
